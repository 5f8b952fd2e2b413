// SPDX-License-Identifier: Apache-2.0
// The program `hfdeltafs`, and `mount.hfdeltafs` when it is called by that name.
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/delta_cli.hpp"
#include "cli/diff_command.hpp"
#include "cli/log_command.hpp"
#include "cli/mount_command.hpp"
#include "cli/publish_command.hpp"
#include "cli/pull_command.hpp"
#include "cli/session_commands.hpp"
#include "cli/tag_command.hpp"
#include "cli/verify_command.hpp"

namespace {

void add_commands(hfd::cli::Command& program) {
  hfd::cli::add_mount_command(program);
  hfd::cli::add_umount_command(program);
  hfd::cli::add_status_command(program);
  hfd::cli::add_commit_command(program);
  hfd::cli::add_publish_command(program);
  hfd::cli::add_pull_command(program);
  hfd::cli::add_log_command(program);
  hfd::cli::add_diff_command(program);
  hfd::cli::add_verify_command(program);
  hfd::cli::add_tag_command(program);
  hfd::cli::add_delta_commands(program);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "";
  const std::size_t slash = path.rfind('/');
  if (path.substr(slash == std::string_view::npos ? 0 : slash + 1) == "mount.hfdeltafs") {
    return hfd::cli::run_mount_helper(std::vector<std::string>(argv + 1, argv + argc));
  }
  return hfd::cli::run_command_line(argc, argv, add_commands);
}
