// SPDX-License-Identifier: Apache-2.0
#include "cli/publish_command.hpp"

#include <memory>
#include <string>


#include "api/publish_folder.hpp"
#include "cli/progress_line.hpp"
#include "cli/report.hpp"

namespace hfd::cli {
namespace {

struct Arguments {
  api::PublishFolderOptions options;
  std::string base;
  std::string format = "native";
  bool partial = false;  ///< accepted for symmetry with commit: a folder is published as it is
  bool json = false;
};

void warn_about(const api::PublishedFolder& published) {
  for (const publish::IncompleteFile& file : published.incomplete) {
    warn("published although incomplete: " + file.path + ": " + file.reason);
  }
  for (const publish::IncompleteFile& file : published.stale) {
    warn("published although left over from an older set: " + file.path + ": " + file.reason);
  }
  for (const std::string& path : published.junk) {
    warn("not published, a temporary name: " + path);
  }
  for (const std::string& path : published.skipped) {
    warn("not published, neither a file nor a symlink to one: " + path);
  }
}

base::Json to_json(const publish::PublishOutcome& outcome) {
  const lineage::Manifest& manifest = outcome.version->manifest;
  return base::Json::object()
      .set("version", outcome.version->id.hex())
      .set("parent", manifest.parent ? base::Json(manifest.parent->hex()) : base::Json())
      .set("seq", manifest.sequence)
      .set("ref", manifest.ref)
      .set("files", outcome.file_count)
      .set("full_bytes", outcome.full_bytes)
      .set("stored_bytes", outcome.stored_bytes)
      .set("meta_bytes", outcome.meta_bytes)
      .set("seconds", outcome.seconds);
}

int run_publish(const Arguments& arguments) {
  if (arguments.format != "native") {
    Error error{ErrorCode::unsupported, "cannot write this format: it comes with a later version",
                arguments.format};
    return report(std::move(error).with_hint("use --format native"), arguments.json);
  }
  api::PublishFolderOptions options = arguments.options;
  if (!arguments.base.empty()) {
    options.base = arguments.base;
  }
  const auto published = [&] {
    ProgressLine line;
    options.progress = [&line](const std::string& path, const char* doing, std::uint64_t done,
                               std::uint64_t total) { line.tell(path, doing, done, total); };
    return api::publish_folder(options);
  }();
  if (!published.ok()) {
    return report(published.error(), arguments.json);
  }
  warn_about(*published);
  return arguments.json ? print_json(to_json(published->outcome))
                        : print_text(published->outcome.version->id.hex());
}

}  // namespace

void add_publish_command(Command& program) {
  Command command = program.add_command("publish", "Make the files of a folder the next version, without a mount");
  const auto arguments = std::make_shared<Arguments>();
  command.required("folder", arguments->options.folder,
                   "The folder; all of its files are the version");
  command.required("uri", arguments->options.uri, "The bucket; made when it is not there");
  command.text("--base", arguments->base, "The base model, for the first publish");
  command.text("--ref", arguments->options.ref, "The line of versions to publish to");
  command.message("-m,--message", arguments->options.message, "What this version is");
  command.choice("--format", arguments->format, {"native", "slime", "trl"}, "Layout on the bucket");
  command.flag("--partial", arguments->partial,
                    "Accepted: incomplete sets are published anyway, with a warning");
  command.flag("--json", arguments->json, "One JSON document");
  command.footer(
      "Prints the id of the new version.\n"
      "Example:\n  hfdeltafs publish ./checkpoint-100 ./deltas --base ./Qwen3-0.6B -m 'step 100'");
  command.runs([arguments] { return run_publish(*arguments); });
}

}  // namespace hfd::cli
