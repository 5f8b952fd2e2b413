// SPDX-License-Identifier: Apache-2.0
#include "cli/pull_command.hpp"

#include <memory>
#include <string>


#include "api/pull.hpp"
#include "cli/progress_line.hpp"
#include "cli/report.hpp"

namespace hfd::cli {
namespace {

struct Arguments {
  api::PullOptions options;
  std::string base;
  bool json = false;
};

base::Json to_json(const api::Pulled& pulled) {
  base::Json files = base::Json::array();
  for (const api::PulledFile& file : pulled.files) {
    files.push(base::Json::object()
                   .set("path", file.path)
                   .set("bytes", file.bytes)
                   .set("sha256", file.sha256.hex())
                   .set("written", file.written));
  }
  return base::Json::object().set("version", pulled.version.hex()).set("files", std::move(files));
}

int run_pull(const Arguments& arguments) {
  api::PullOptions options = arguments.options;
  if (!arguments.base.empty()) {
    options.base = arguments.base;
  }
  const auto pulled = [&] {
    ProgressLine line;
    options.progress = [&line](const std::string& path, std::uint64_t bytes) {
      line.tell(path, "pulling", 0, bytes);
    };
    return api::pull(options);
  }();
  if (!pulled.ok()) {
    return report(pulled.error(), arguments.json);
  }
  return arguments.json ? print_json(to_json(*pulled)) : print_text(pulled->version.hex());
}

}  // namespace

void add_pull_command(Command& program) {
  Command command = program.add_command("pull", "Write a version out as full files");
  const auto arguments = std::make_shared<Arguments>();
  command.required("source", arguments->options.source, "A bucket, or a base model");
  command.required("folder", arguments->options.folder, "Where to; files of other names in it stay");
  command.text("--version", arguments->options.version,
                      "An id, tag, ref, head~N or vN; the newest when left out");
  command.text("--base", arguments->base,
                      "Where the base model is, if not where the bucket says");
  command.text("--ref", arguments->options.ref, "The line of versions");
  command.flag("--json", arguments->json, "One JSON document");
  command.footer(
      "Files that are right already are not written again. Prints the id of the version.\n"
      "Example:\n  hfdeltafs pull ./deltas ./model --version head~1");
  command.runs([arguments] { return run_pull(*arguments); });
}

}  // namespace hfd::cli
