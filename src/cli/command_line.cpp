// SPDX-License-Identifier: Apache-2.0
#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "cli/report.hpp"
#include "hfdeltafs/build_info.hpp"

namespace hfd::cli {

namespace {

std::string not_empty(const std::string& value) { return value.empty() ? "an empty word where a value is needed" : ""; }

}  // namespace

struct Command::State {
  std::function<int()> run;
};

Command::Command(CLI::App* app, std::shared_ptr<State> state) : app_(app), state_(std::move(state)) {}

Command Command::add_command(const std::string& name, const std::string& description) {
  app_->require_subcommand(1);
  return {app_->add_subcommand(name, description), state_};
}

void Command::text(const std::string& name, std::string& target, const std::string& help) {
  CLI::Option* option = app_->add_option(name, target, help)->check(not_empty);
  if (!target.empty()) {
    option->capture_default_str();
  }
}

void Command::text(const std::string& name, std::optional<std::string>& target, const std::string& help) {
  app_->add_option_function<std::string>(
          name, [&target](const std::string& value) { target = value; }, help)
      ->check(not_empty);
}

void Command::message(const std::string& name, std::string& target, const std::string& help) {
  app_->add_option(name, target, help);
}

void Command::required(const std::string& name, std::string& target, const std::string& help) {
  app_->add_option(name, target, help)->required()->check(not_empty);
}

void Command::words(const std::string& name, std::vector<std::string>& target, std::size_t count_min,
                    std::size_t count_max, const std::string& help) {
  CLI::Option* option = app_->add_option(name, target, help);
  option->required(count_min > 0);
  option->expected(static_cast<int>(count_min), static_cast<int>(count_max));
}

void Command::repeated(const std::string& name, std::vector<std::string>& target, const std::string& help) {
  app_->add_option(name, target, help)->expected(1)->take_all();
}

void Command::number(const std::string& name, std::size_t& target, const std::string& help) {
  app_->add_option(name, target, help);
}

void Command::flag(const std::string& name, bool& target, const std::string& help) {
  app_->add_flag(name, target, help);
}

void Command::choice(const std::string& name, std::string& target, const std::vector<std::string>& allowed,
                     const std::string& help) {
  app_->add_option(name, target, help)->check(CLI::IsMember(allowed))->capture_default_str();
}

void Command::exclude(const std::string& name, const std::string& other) {
  app_->get_option(name)->excludes(app_->get_option(other));
}

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::runs(std::function<int()> run) {
  app_->callback([state = state_, run = std::move(run)] { state->run = run; });
}

int run_command_line(int argc, char** argv, const std::function<void(Command&)>& add_commands) {
  CLI::App app("hfdeltafs: many versions of a model as folders of full files, stored as one base and small deltas",
               "hfdeltafs");
  app.set_version_flag("--version", hfd::program_version());
  app.set_help_all_flag("--help-all", "Help of all commands");
  const auto state = std::make_shared<Command::State>();
  Command root(&app, state);
  add_commands(root);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {  // --help, --help-all, --version
    return app.exit(shown);
  } catch (const CLI::ParseError& failure) {
    return report(Error{ErrorCode::invalid_argument, failure.what(), "", "see hfdeltafs --help"}, false);
  }
  return state->run ? state->run() : report(Error{ErrorCode::invalid_argument, "no command given"}, false);
}

}  // namespace hfd::cli
