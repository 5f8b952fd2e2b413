// SPDX-License-Identifier: Apache-2.0
#include "cli/delta_cli.hpp"

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

void add_delta_commands(Command& program) {
  Command delta = program.add_command("delta", "Delta objects as plain files");
  delta.footer("Example:\n  hfdeltafs delta info tuned.hfd --json");
  const auto arguments = std::make_shared<DeltaArguments>();

  Command encode = delta.add_command("encode", "Write the difference between two files");
  encode.required("base", arguments->first, "The file, or a folder of files, to code against");
  encode.required("target", arguments->second, "The file to code");
  encode.required("out", arguments->third, "The delta object to write");
  encode.footer("Example:\n  hfdeltafs delta encode base.safetensors tuned.safetensors tuned.hfd");
  encode.runs([arguments] { return finish(run_delta_encode(arguments->first, arguments->second, arguments->third)); });

  Command apply = delta.add_command("apply", "Rebuild a file from its base and a delta object");
  apply.required("base", arguments->first, "The file, or the folder, that it was coded against");
  apply.required("delta", arguments->second, "The delta object");
  apply.required("out", arguments->third, "The file to write");
  apply.footer("Example:\n  hfdeltafs delta apply base.safetensors tuned.hfd tuned.safetensors");
  apply.runs([arguments] { return finish(run_delta_apply(arguments->first, arguments->second, arguments->third)); });

  Command info = delta.add_command("info", "Say what a delta object holds");
  info.required("delta", arguments->first, "The delta object");
  info.flag("--json", arguments->json, "One JSON document");
  info.footer("Example:\n  hfdeltafs delta info tuned.hfd --json");
  info.runs([arguments] { return show_info(*arguments); });
}

}  // namespace hfd::cli
