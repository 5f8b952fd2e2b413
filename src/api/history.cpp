// SPDX-License-Identifier: Apache-2.0
#include "api/history.hpp"

#include <algorithm>
#include <map>

#include "lineage/ref_names.hpp"

namespace hfd::api {
namespace {

constexpr std::string_view tag_folder = "tags/";

std::uint64_t meta_bytes_of(const lineage::Version& version) {
  const std::uint64_t claim = lineage::claim_text(version.id).size();
  return version.manifest_bytes + claim +
         lineage::hint_text(version.manifest.sequence, version.id).size();
}

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Names that resolve() takes for something else, or could.
bool means_something_else(const std::string& name) {
  constexpr std::size_t prefix_digits_min = 6;
  const bool is_number =
      name.size() > 1 && name.front() == 'v' && is_digits(std::string_view(name).substr(1));
  const bool is_prefix =
      name.size() >= prefix_digits_min && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      });
  return is_number || is_prefix;
}

Result<std::string> tag_ref(const std::string& name) {
  std::string ref = std::string(tag_folder) + name;
  if (!lineage::is_valid_ref(ref) || means_something_else(name)) {
    Error error{ErrorCode::invalid_argument, "not a name for a tag", name};
    return std::move(error).with_hint(
        "use letters, digits, dots and dashes; not head, v and a number, or hex digits alone");
  }
  return ref;
}

}  // namespace

Result<std::vector<LogEntry>> read_log(Session& session, std::size_t count_max) {
  std::vector<LogEntry> entries;
  if (!session.is_bucket()) {
    HFD_TRY(const lineage::VersionPtr base, session.version(""));
    LogEntry entry;
    entry.id = base->id;
    entry.version = base;
    entries.push_back(std::move(entry));
    return entries;
  }
  std::map<VersionId, std::vector<std::string>> tags;
  HFD_TRY(const auto tag_list, list_tags(session));
  for (const auto& [name, id] : tag_list) {
    tags[id].push_back(name);
  }
  HFD_TRY(const std::optional<lineage::RefState> head, session.bucket().head(session.ref()));
  std::optional<VersionId> next = head ? std::optional(head->version) : std::nullopt;
  while (next && entries.size() < count_max) {
    LogEntry entry;
    entry.id = *next;
    entry.tags = tags[*next];
    auto version = session.bucket().version(*next);
    next = std::nullopt;
    if (version.ok()) {
      entry.version = *version;
      entry.meta_bytes = meta_bytes_of(**version);
      next = entry.version->manifest.parent;
    } else if (version.error().code == ErrorCode::not_found && !entries.empty()) {
      break;  // older versions were collected
    } else {
      entry.bad = version.error().message;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<std::pair<std::string, VersionId>>> list_tags(Session& session) {
  std::vector<std::pair<std::string, VersionId>> tags;
  HFD_TRY(const std::vector<std::string> refs, session.bucket().refs());
  for (const std::string& ref : refs) {
    if (ref.compare(0, tag_folder.size(), tag_folder) != 0) {
      continue;
    }
    HFD_TRY(const std::optional<lineage::RefState> state, session.bucket().head(ref));
    if (state) {
      tags.emplace_back(ref.substr(tag_folder.size()), state->version);
    }
  }
  return tags;
}

Result<VersionId> set_tag(Session& session, const std::string& name, const std::string& version) {
  HFD_TRY(const std::string ref, tag_ref(name));
  HFD_TRY(const VersionId id, session.bucket().resolve(version, session.ref()));
  HFD_TRY([[maybe_unused]] const lineage::VersionPtr exists, session.bucket().version(id));
  HFD_TRY(const std::optional<lineage::RefState> state, session.bucket().head(ref));
  if (state && state->version == id) {
    return id;
  }
  HFD_TRY_VOID(session.bucket().claim(ref, state ? state->sequence + 1 : 1, id));
  return id;
}

Result<void> delete_tag(Session& session, const std::string& name) {
  HFD_TRY(const std::string ref, tag_ref(name));
  HFD_TRY(const std::optional<lineage::RefState> state, session.bucket().head(ref));
  if (!state) {
    Error error{ErrorCode::not_found, "cannot delete the tag: there is none of this name", name};
    return std::move(error).with_hint("hfdeltafs tag --list shows all");
  }
  return session.bucket().remove_ref(ref);
}

}  // namespace hfd::api
