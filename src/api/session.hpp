// SPDX-License-Identifier: Apache-2.0
// A SOURCE opened without a mount: remote, bucket, rebuilder and threads wired together. Used by
// the history commands and by the public library; a mount wires its own (it has a cache and a
// journal). Blocking calls; one session is for one thread, its parts are thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "lineage/bucket.hpp"
#include "publish/publisher.hpp"
#include "rebuild/rebuilder.hpp"
#include "remote/remote.hpp"

namespace hfd::api {

/// Opens the remotes that base files come from, each once. Thread-safe.
class Upstreams {
 public:
  /// `instead`: a place that has the base's files, for all URIs that manifests name (--base).
  explicit Upstreams(std::optional<remote::ParsedUri> instead) : instead_(std::move(instead)) {}
  /// Does no network I/O. The remote lives as long as this object.
  Result<remote::Remote*> find(const lineage::UpstreamEdge& edge);

 private:
  const std::optional<remote::ParsedUri> instead_;
  base::Mutex mutex_;
  std::map<std::string, std::unique_ptr<remote::Remote>> remotes_ HFD_GUARDED_BY(mutex_);
};

struct SessionOptions {
  std::string source;      ///< SOURCE or URI as the user wrote it
  bool as_bucket = false;  ///< it is a bucket even when nothing is in it yet (publish)
  bool create = false;     ///< a folder that is missing may be made by the first write
  std::optional<std::string> base = {};  ///< where the base is, not where manifests say
  std::string ref = "main";
  std::chrono::milliseconds deadline{60'000};
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);

  /// False: the source is a base, a plain folder of files.
  bool is_bucket() const { return is_bucket_; }
  const std::string& ref() const { return options_.ref; }
  remote::Remote& remote() { return *remote_; }
  lineage::Bucket& bucket() { return *bucket_; }
  base::ThreadPool& pool() { return *pool_; }
  rebuild::Rebuilder& rebuilder() { return *rebuilder_; }
  Upstreams& upstreams() { return *upstreams_; }

  /// The version that `text` names; empty: the newest. Of a base there is one, version 0.
  Result<lineage::VersionPtr> version(const std::string& text);
  /// Version 0 of the base that `options.base` names, or of the source when it is a base. Reads all
  /// of its files. invalid_argument when there is no such base.
  Result<lineage::VersionPtr> base_version();
  std::unique_ptr<base::ReadableBytes> open_content(const lineage::VersionPtr& version,
                                                    const ContentHash& sha256);
  publish::ContentOpener opener();

 private:
  explicit Session(SessionOptions options) : options_(std::move(options)) {}

  const SessionOptions options_;
  bool is_bucket_ = false;
  std::unique_ptr<remote::Remote> remote_;
  std::unique_ptr<Upstreams> upstreams_;
  std::unique_ptr<lineage::Bucket> bucket_;
  std::unique_ptr<base::ThreadPool> pool_;
  std::unique_ptr<rebuild::Rebuilder> rebuilder_;
};

/// Opens the remote of a base. unsupported when it is a bucket: its files are not there as files.
Result<std::unique_ptr<remote::Remote>> open_base(const std::string& source);

}  // namespace hfd::api
