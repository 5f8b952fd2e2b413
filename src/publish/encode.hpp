// SPDX-License-Identifier: Apache-2.0
// One file into one object on the bucket: a blob when it is small, else a delta or an anchor. Part
// of publish. Writes objects only; nobody sees them before a manifest names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "lineage/bucket.hpp"
#include "publish/publisher.hpp"
#include "publish/sources.hpp"

namespace hfd::publish {

/// Files up to this size are stored whole, compressed when that helps (interface.md, "What is
/// counted").
inline constexpr std::uint64_t small_file_bytes_max = 64U << 10U;

/// What became of one file.
struct CodedFile {
  ContentHash sha256;
  std::uint64_t bytes = 0;
  std::optional<lineage::Edge> edge;  ///< absent: the content was known before
  std::uint64_t stored_bytes = 0;     ///< what was really written
  std::uint64_t changed_elements = 0;
  std::uint64_t total_elements = 0;
};

class FileCoder {
 public:
  /// All references must outlive this object.
  FileCoder(lineage::Bucket& bucket, const PublishRequest& request, SourceSet& sources,
            base::ThreadPool& pool)
      : bucket_(bucket), request_(request), sources_(sources), pool_(pool) {}

  /// Precondition: bytes.size() <= small_file_bytes_max. Safe from several threads.
  Result<CodedFile> code_small(const std::string& path, base::ReadableBytes& bytes);
  /// One at a time: the encoder uses the whole pool. The caller must not be one of its threads.
  Result<CodedFile> code_large(const std::string& path, base::ReadableBytes& bytes);

 private:
  Result<ContentHash> hash_of(base::ReadableBytes& bytes) const;
  Result<CodedFile> encode(const std::string& path, base::ReadableBytes& bytes);
  /// Puts an object unless the bucket has it. Returns the bytes written.
  Result<std::uint64_t> store(const std::string& path, const std::string& name,
                              base::ReadableBytes& bytes);
  Result<void> check_cancelled() const;

  lineage::Bucket& bucket_;
  const PublishRequest& request_;
  SourceSet& sources_;
  base::ThreadPool& pool_;
  std::uint64_t temporary_count_ = 0;
  std::vector<CodedFile>
      large_;  ///< coded by this publish: a second file of the same content is free
  base::Mutex mutex_;
  std::unordered_set<std::string> stored_
      HFD_GUARDED_BY(mutex_);  ///< names written or found by this publish
};

/// The error with which a cancelled publish ends.
Error cancelled_error();

}  // namespace hfd::publish
