// SPDX-License-Identifier: Apache-2.0
// What a user may write for a VERSION, and history along parents.
#include <algorithm>
#include <charconv>

#include "lineage/bucket.hpp"
#include "lineage/manifest_edges.hpp"
#include "lineage/ref_names.hpp"

namespace hfd::lineage {
namespace {

constexpr std::size_t prefix_digits_min = 6;

Error no_such_version(const std::string& text) {
  Error error{ErrorCode::not_found, "cannot find the version: no such id, ref, tag or number",
              text.substr(0, 300)};
  return std::move(error).with_hint("hfdeltafs log lists the versions");
}

std::optional<std::uint64_t> parse_number(std::string_view digits) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, failed] = std::from_chars(digits.data(), end, value);
  const bool whole = !digits.empty() && failed == std::errc() && stop == end;
  return whole ? std::optional(value) : std::nullopt;
}

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

std::string lower(std::string text) {
  for (char& c : text) {
    c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return text;
}

}  // namespace

Result<VersionId> Bucket::head_or_not_found(const std::string& ref) {
  HFD_TRY(const std::optional<RefState> state, head(ref));
  if (!state) {
    Error error{ErrorCode::not_found, "cannot find the ref: it has no versions", ref};
    return std::move(error).with_hint("publish something first, or name another ref");
  }
  return state->version;
}

Result<VersionPtr> Bucket::base_version(const std::string& ref) {
  for (const std::string& name : {ref, std::string("main")}) {
    HFD_TRY(const std::vector<remote::ObjectInfo> objects, remote_.list(ref_folder(name)));
    for (const remote::ObjectInfo& object : objects) {  // sorted: number 0 comes first
      const auto claim =
          parse_claim_name(std::string_view(object.name).substr(ref_folder(name).size() + 1));
      if (claim && claim->sequence == 0) {
        HFD_TRY(const VersionId id, read_claim(name, *claim));
        return version(id);
      }
    }
  }
  return VersionPtr();
}

Result<VersionId> Bucket::ancestor(
    const VersionId& from, const std::string& text,
    const std::function<bool(const Version&, std::uint64_t)>& is_it) {
  VersionId id = from;
  for (std::uint64_t steps = 0;; ++steps) {
    HFD_TRY(const VersionPtr version, this->version(id));
    if (is_it(*version, steps)) {
      return id;
    }
    if (!version->manifest.parent) {
      return no_such_version(text);
    }
    id = *version->manifest.parent;
  }
}

Result<std::optional<VersionId>> Bucket::resolve_ref(const std::string& name) {
  for (const std::string& ref : {std::string("tags/") + name, name}) {
    if (is_valid_ref(ref)) {
      HFD_TRY(const std::optional<RefState> state, head(ref));
      if (state) {
        return std::optional<VersionId>(state->version);
      }
    }
  }
  return std::optional<VersionId>{};
}

Result<VersionId> Bucket::resolve_prefix(const std::string& text) {
  if (text.size() < prefix_digits_min || text.size() > 64 || !is_hex(text)) {
    return no_such_version(text);
  }
  const std::string prefix = lower(text);
  HFD_TRY(const std::vector<VersionId> ids, version_ids());
  std::optional<VersionId> found;
  for (const VersionId& id : ids) {
    if (id.hex().compare(0, prefix.size(), prefix) != 0) {
      continue;
    }
    if (found) {
      Error error{ErrorCode::invalid_argument,
                  "cannot tell the version: several ids start like this", text};
      return std::move(error).with_hint("write more digits");
    }
    found = id;
  }
  if (!found) {
    return no_such_version(text);
  }
  return *found;
}

Result<VersionId> Bucket::resolve(const std::string& text, const std::string& ref) {
  // REF~N and head~N: N versions before. "~" cannot stand in a ref, so nothing else is meant.
  if (const std::size_t tilde = text.find('~'); tilde != std::string::npos) {
    const auto back = parse_number(std::string_view(text).substr(tilde + 1));
    if (!back) {
      return no_such_version(text);
    }
    HFD_TRY(const VersionId from, resolve(text.substr(0, tilde), ref));
    return ancestor(from, text,
                    [&](const Version&, std::uint64_t steps) { return steps == *back; });
  }
  if (text.empty() || text == "head") {
    return head_or_not_found(ref);
  }
  if (text.front() == 'v') {
    if (const auto number = parse_number(std::string_view(text).substr(1))) {
      HFD_TRY(const VersionId from, head_or_not_found(ref));
      return ancestor(from, text, [&](const Version& version, std::uint64_t) {
        return version.manifest.sequence == *number;
      });
    }
  }
  if (text.size() != 64 || !is_hex(text)) {
    HFD_TRY(const std::optional<VersionId> named, resolve_ref(text));
    if (named) {
      return *named;
    }
  }
  return resolve_prefix(text);
}

Result<std::vector<VersionPtr>> Bucket::history(const std::string& ref, std::size_t count_max) {
  std::vector<VersionPtr> versions;
  HFD_TRY(const std::optional<RefState> state, head(ref));
  std::optional<VersionId> next = state ? std::optional(state->version) : std::nullopt;
  while (next && versions.size() < count_max) {
    auto version = this->version(*next);
    if (!version.ok()) {
      if (version.error().code == ErrorCode::not_found && !versions.empty()) {
        break;  // older versions were collected
      }
      return std::move(version).error();
    }
    next = (*version)->manifest.parent;
    versions.push_back(std::move(*version));
  }
  return versions;
}

}  // namespace hfd::lineage
