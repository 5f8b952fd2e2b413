// SPDX-License-Identifier: Apache-2.0
#include "cli/status_document.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace hfd::cli {
namespace {

using base::Json;

/// Resident memory now, from /proc/self/statm; 0 when it cannot be read.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json staging_of(const publish::SyncStatus& status, const DaemonOptions& options) {
  Json files = Json::array();
  for (const publish::StagedState& file : status.staged) {
    Json entry = Json::object();
    entry.set("path", file.path).set("bytes", file.bytes).set("state", file.state).set("reason", text_or_null(file.reason));
    files.push(std::move(entry));
  }
  Json staging = Json::object();
  staging.set("dir", options.folders.staging).set("bytes", status.staged_bytes).set("files", std::move(files));
  return staging;
}

/// Failures of publishing, following and reading, newest first.
Json errors_of(std::vector<publish::RecordedError> recorded_errors, const std::vector<publish::RecordedError>& more) {
  recorded_errors.insert(recorded_errors.end(), more.begin(), more.end());
  std::stable_sort(recorded_errors.begin(), recorded_errors.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  Json errors = Json::array();
  for (const publish::RecordedError& recorded : recorded_errors) {
    Json entry = Json::object();
    entry.set("time", base::to_rfc3339(recorded.time))
        .set("code", error_code_name(recorded.error.code))
        .set("object", recorded.error.object)
        .set("message", recorded.error.message);
    errors.push(std::move(entry));
  }
  return errors;
}

Json counters_of(const StatusParts& parts) {
  const rebuild::Counters& rebuilt = parts.rebuilder.counters();
  Json counters = Json::object();
  counters.set("fuse_reads", parts.fuse_reads)
      .set("remote_requests", parts.sources.requests())
      .set("remote_bytes_in", parts.sources.bytes_in())
      .set("remote_bytes_out", parts.sources.bytes_out())
      .set("blocks_rebuilt", rebuilt.blocks_rebuilt.load())
      .set("blocks_bad", rebuilt.blocks_bad.load() + parts.cache.counters().bad.load())
      .set("blocks_healed", rebuilt.blocks_healed.load());
  return counters;
}

}  // namespace

Json status_document(const StatusParts& parts) {
  const publish::SyncStatus status = parts.syncer.status();
  const lineage::VersionPtr version = parts.syncer.current();
  Json cache = Json::object();
  cache.set("dir", parts.cache.folder())
      .set("bytes", parts.cache.bytes_used())
      .set("limit_bytes", parts.cache.bytes_max());
  Json last_publish;
  if (status.last_version) {
    last_publish = Json::object();
    last_publish.set("version", status.last_version->hex()).set("time", base::to_rfc3339(status.last_time));
  }
  Json mount = Json::object();
  mount.set("mount_point", parts.options.mount_point)
      .set("source", parts.sources.source_uri())
      .set("bucket", text_or_null(parts.sources.bucket_uri()))
      .set("base", text_or_null(parts.sources.base_uri()))
      .set("base_revision", text_or_null(parts.sources.base_revision()))
      .set("ref", parts.options.spec.ref)
      .set("version", version ? Json(version->id.hex()) : Json())
      .set("seq", version ? Json(version->manifest.sequence) : Json(0))
      .set("read_only", parts.read_only)
      .set("pid", static_cast<std::int64_t>(::getpid()))
      .set("started", base::to_rfc3339(parts.started))
      .set("cache", std::move(cache))
      .set("staging", staging_of(status, parts.options))
      .set("rss_bytes", resident_bytes())
      .set("last_publish", std::move(last_publish))
      .set("errors", errors_of(status.errors, parts.read_errors))
      .set("conflicts", Json::array())
      .set("counters", counters_of(parts))
      .set("control", parts.control);
  Json document = Json::object();
  document.set("mounts", std::move(Json::array().push(std::move(mount))));
  return document;
}

}  // namespace hfd::cli
