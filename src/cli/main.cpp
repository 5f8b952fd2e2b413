// SPDX-License-Identifier: Apache-2.0
// The program `hfdeltafs`, and `mount.hfdeltafs` when it is called by that name.
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/delta_cli.hpp"
#include "cli/mount_command.hpp"
#include "cli/outcome.hpp"
#include "cli/report.hpp"
#include "cli/session_commands.hpp"
#include "hfdeltafs/build_info.hpp"

namespace {

/// Parse errors are usage errors: one line, exit code 2.
int usage_error(const CLI::ParseError& failure) {
  return hfd::cli::report(hfd::Error{hfd::ErrorCode::invalid_argument, failure.what(), "", "see hfdeltafs --help"}, false);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc > 0 ? argv[0] : "";
  if (name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1) == "mount.hfdeltafs") {
    return hfd::cli::run_mount_helper(std::vector<std::string>(argv + 1, argv + argc));
  }
  CLI::App app("hfdeltafs: many versions of a model as folders of full files, stored as one base and small deltas",
               "hfdeltafs");
  app.set_version_flag("--version", hfd::program_version());
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of all commands");
  hfd::cli::Outcome outcome;
  hfd::cli::add_mount_command(app, outcome);
  hfd::cli::add_umount_command(app, outcome);
  hfd::cli::add_status_command(app, outcome);
  hfd::cli::add_commit_command(app, outcome);
  hfd::cli::add_delta_commands(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& failure) {
    return usage_error(failure);
  }
  return outcome.run ? outcome.run() : 2;
}
