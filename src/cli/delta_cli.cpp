// SPDX-License-Identifier: Apache-2.0
#include "cli/delta_cli.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/delta_command.hpp"
#include "cli/report.hpp"

namespace hfd::cli {
namespace {

struct DeltaArguments {
  std::string first, second, third;
  bool json = false;
};

int finish(const Result<void>& result) { return result.ok() ? 0 : report(result.error(), false); }

int show_info(const DeltaArguments& arguments) {
  const auto text = run_delta_info(arguments.first, arguments.json);
  return text.ok() ? print_text(*text) : report(text.error(), arguments.json);
}

}  // namespace

void add_delta_commands(CLI::App& app, Outcome& outcome) {
  CLI::App* delta = app.add_subcommand("delta", "Delta objects as plain files");
  delta->require_subcommand(1);
  const auto arguments = std::make_shared<DeltaArguments>();

  CLI::App* encode = delta->add_subcommand("encode", "Write the difference between two files");
  encode->add_option("base", arguments->first, "The file, or a folder of files, to code against")->required();
  encode->add_option("target", arguments->second, "The file to code")->required();
  encode->add_option("out", arguments->third, "The delta object to write")->required();
  encode->footer("Example:\n  hfdeltafs delta encode base.safetensors tuned.safetensors tuned.hfd");
  encode->callback([arguments, &outcome] {
    outcome.run = [arguments] { return finish(run_delta_encode(arguments->first, arguments->second, arguments->third)); };
  });

  CLI::App* apply = delta->add_subcommand("apply", "Rebuild a file from its base and a delta object");
  apply->add_option("base", arguments->first, "The file, or the folder, that it was coded against")->required();
  apply->add_option("delta", arguments->second, "The delta object")->required();
  apply->add_option("out", arguments->third, "The file to write")->required();
  apply->footer("Example:\n  hfdeltafs delta apply base.safetensors tuned.hfd tuned.safetensors");
  apply->callback([arguments, &outcome] {
    outcome.run = [arguments] { return finish(run_delta_apply(arguments->first, arguments->second, arguments->third)); };
  });

  CLI::App* info = delta->add_subcommand("info", "Say what a delta object holds");
  info->add_option("delta", arguments->first, "The delta object")->required();
  info->add_flag("--json", arguments->json, "One JSON document");
  info->footer("Example:\n  hfdeltafs delta info tuned.hfd --json");
  info->callback([arguments, &outcome] { outcome.run = [arguments] { return show_info(*arguments); }; });
}

}  // namespace hfd::cli
