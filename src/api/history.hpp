// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs log` and `hfdeltafs tag`: versions of a ref and names for them. Blocking.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/session.hpp"

namespace hfd::api {

struct LogEntry {
  VersionId id;
  lineage::VersionPtr version;    ///< null when the manifest is damaged: see `bad`
  std::uint64_t meta_bytes = 0;   ///< manifest, claim and hint
  std::vector<std::string> tags;  ///< without "tags/"
  std::string bad;                ///< why the version cannot be read; empty when it can
};

/// Newest first, at most `count_max`. A damaged manifest is the last entry: what came before it is
/// not known. A base has one entry, itself.
Result<std::vector<LogEntry>> read_log(Session& session, std::size_t count_max);

/// Names and versions of all tags, by name.
Result<std::vector<std::pair<std::string, VersionId>>> list_tags(Session& session);
/// Makes or moves a tag. invalid_argument when the name would mean something else ("head", "v7", a
/// hex prefix).
Result<VersionId> set_tag(Session& session, const std::string& name, const std::string& version);
/// not_found when there is no such tag.
Result<void> delete_tag(Session& session, const std::string& name);

}  // namespace hfd::api
