// SPDX-License-Identifier: Apache-2.0
// What a mount shows: turns SOURCE, --bucket, --base and --ref into remotes, a bucket, the base as
// version 0 and the version to start with (interface.md, "Naming things").
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "lineage/bucket.hpp"
#include "rebuild/rebuilder.hpp"
#include "remote/remote.hpp"

namespace hfd::cli {

struct SourceSpec {
  std::string source;
  std::string bucket;    ///< empty: none, or the source itself is one
  std::string base;
  std::string ref = "main";
  std::string revision;  ///< a version to show read-only; empty: the head of the ref
  std::chrono::milliseconds deadline{60'000};
};

class Sources {
 public:
  /// Opens everything and finds the version to show. Reads a base folder once (to hash it) unless the
  /// bucket knows it. not_found: a missing source or version; corrupt: a base that is not the one the
  /// bucket was made with.
  static Result<std::unique_ptr<Sources>> open(const SourceSpec& spec, base::ThreadPool& pool);

  lineage::Bucket* bucket() { return bucket_.get(); }  ///< null: a base alone
  remote::Remote& objects() { return bucket_remote_ ? *bucket_remote_ : *base_remote_; }
  const lineage::VersionPtr& base() const { return base_; }
  const lineage::VersionPtr& start() const { return start_; }
  /// URIs for people and status; empty where there is none.
  std::string source_uri() const { return source_uri_; }
  std::string bucket_uri() const { return bucket_remote_ ? bucket_remote_->uri() : ""; }
  std::string base_uri() const;
  std::string base_revision() const;

  rebuild::UpstreamFinder upstream_finder();
  /// A version by id: the base, the start, or one of the bucket.
  Result<lineage::VersionPtr> version(const VersionId& id);
  Result<std::vector<VersionId>> version_ids();
  Result<std::vector<std::pair<std::string, VersionId>>> refs();
  /// Traffic of all remotes together.
  std::uint64_t requests() const;
  std::uint64_t bytes_in() const;
  std::uint64_t bytes_out() const;

 private:
  Sources() = default;
  Result<void> open_remotes(const SourceSpec& spec);
  Result<void> find_versions(const SourceSpec& spec, base::ThreadPool& pool);
  Result<void> check_base(bool is_named, base::ThreadPool& pool);
  void remember_base_files(const lineage::Manifest& right);
  Result<void> check_base_file(const std::string& path) const;
  Result<remote::Remote*> upstream(const lineage::UpstreamEdge& edge);
  template <class Pick>
  std::uint64_t sum(const Pick& pick) const;

  std::string source_uri_;
  std::unique_ptr<remote::Remote> bucket_remote_;
  std::unique_ptr<remote::Remote> base_remote_;
  std::unique_ptr<lineage::Bucket> bucket_;
  lineage::VersionPtr base_;
  lineage::VersionPtr start_;

  /// How a file of the base was when its bytes were known to be right; nothing: they are wrong.
  struct Seen {
    std::uint64_t bytes = 0;
    base::UnixNanoseconds mtime = 0;
    bool operator==(const Seen&) const = default;
  };
  Result<std::optional<Seen>> look_at_base_file(const std::string& path) const;
  std::map<std::string, std::optional<Seen>> base_files_;  ///< written at open only

  mutable base::Mutex mutex_;
  std::map<std::string, std::unique_ptr<remote::Remote>> others_ HFD_GUARDED_BY(mutex_);  ///< by URI
};

}  // namespace hfd::cli
