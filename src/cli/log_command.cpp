// SPDX-License-Identifier: Apache-2.0
#include "cli/log_command.hpp"

#include <memory>
#include <string>


#include "api/history.hpp"
#include "cli/place.hpp"
#include "cli/report.hpp"

namespace hfd::cli {
namespace {

struct Arguments {
  std::string place;
  std::string ref;
  std::size_t count_max = 1'000'000;
  bool json = false;
};

base::Json to_json(const api::LogEntry& entry) {
  using base::Json;
  static const lineage::Manifest none;
  const lineage::Manifest& manifest = entry.version ? entry.version->manifest : none;
  Json tags = Json::array();
  for (const std::string& tag : entry.tags) {
    tags.push(tag);
  }
  std::uint64_t files = 0;
  for (const lineage::FileEntry& file : manifest.files) {
    files += file.kind == lineage::FileEntry::Kind::file ? 1U : 0U;
  }
  return Json::object()
      .set("id", entry.id.hex())
      .set("parent", manifest.parent ? Json(manifest.parent->hex()) : Json())
      .set("seq", entry.version ? Json(manifest.sequence) : Json())
      .set("ref", manifest.ref)
      .set("time", entry.version ? Json(base::to_rfc3339(manifest.time)) : Json())
      .set("message", manifest.message)
      .set("files", files)
      .set("full_bytes", manifest.stats.full_bytes)
      .set("stored_bytes", manifest.stats.stored_bytes)
      .set("meta_bytes", entry.meta_bytes)
      .set("changed_elements", manifest.stats.changed_elements)
      .set("total_elements", manifest.stats.total_elements)
      .set("tags", std::move(tags))
      .set("foreign_version", Json())
      .set("bad", entry.bad.empty() ? Json() : Json(entry.bad));
}

std::string to_text(const api::LogEntry& entry) {
  constexpr std::size_t short_digits = 12;
  const std::string id = entry.id.hex().substr(0, short_digits);
  if (!entry.version) {
    return id + "  damaged: " + entry.bad;
  }
  const lineage::Manifest& manifest = entry.version->manifest;
  constexpr base::UnixNanoseconds second = 1'000'000'000;
  std::string line = id + "  v" + std::to_string(manifest.sequence) + "  " +
                     base::to_rfc3339(manifest.time - manifest.time % second) + "  " +
                     people_bytes(manifest.stats.stored_bytes) + " for " +
                     people_bytes(manifest.stats.full_bytes);
  for (const std::string& tag : entry.tags) {
    line += "  [" + tag + "]";
  }
  return manifest.message.empty()
             ? line
             : line + "  " + manifest.message.substr(0, manifest.message.find('\n'));
}

Result<std::vector<api::LogEntry>> read_entries(const Arguments& arguments) {
  HFD_TRY(const std::unique_ptr<api::Session> session, open_place(arguments.place, arguments.ref));
  HFD_TRY(std::vector<api::LogEntry> entries, api::read_log(*session, arguments.count_max));
  if (entries.empty() && session->ref() != "main" && arguments.count_max > 0) {
    Error error{ErrorCode::not_found, "cannot show the log: there is no such ref", session->ref()};
    return std::move(error).with_hint("leave --ref out to see main");
  }
  return entries;
}

int run_log(const Arguments& arguments) {
  const auto entries = read_entries(arguments);
  if (!entries.ok()) {
    return report(entries.error(), arguments.json);
  }
  if (!arguments.json) {
    for (const api::LogEntry& entry : *entries) {
      print_text(to_text(entry));
    }
    return 0;
  }
  base::Json list = base::Json::array();
  for (const api::LogEntry& entry : *entries) {
    list.push(to_json(entry));
  }
  return print_json(list);
}

}  // namespace

void add_log_command(Command& program) {
  Command command = program.add_command("log", "List the versions, newest first");
  const auto arguments = std::make_shared<Arguments>();
  command.text("place", arguments->place,
                      "A mount or a bucket; the current folder when left out");
  command.text("--ref", arguments->ref,
                      "The line of versions; main, or what the mount shows");
  command.number("-n", arguments->count_max, "At most so many");
  command.flag("--json", arguments->json, "One JSON document");
  command.footer("Example:\n  hfdeltafs log ./deltas -n 5");
  command.runs([arguments] { return run_log(*arguments); });
}

}  // namespace hfd::cli
