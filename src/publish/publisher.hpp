// SPDX-License-Identifier: Apache-2.0
// One publish: files -> objects -> manifest -> claim, in that order of durability (bulk first, then
// the manifest, then the claim, then the hint). Encodes each changed file against the files of the
// parent and of the base. Used by the sync thread of a mount and by `hfdeltafs publish`. Blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/thread_pool.hpp"
#include "lineage/bucket.hpp"

namespace hfd::publish {

/// Gives the bytes of a content of a version; publish does not know rebuild (cli and api wire it).
using ContentOpener = std::function<Result<std::unique_ptr<base::ReadableBytes>>(
    const lineage::VersionPtr&, const ContentHash&)>;

/// One entry of the tree to be published.
struct PublishFile {
  lineage::FileEntry
      entry;  ///< path, kind, mtime, executable, symlink_target; bytes and sha256 are filled in
              ///< here when `known` (content of the parent) and computed otherwise
  bool known = false;  ///< entry.sha256 is a content of the parent version
  /// Opens the bytes of a file that is not known. Called once or twice.
  std::function<Result<std::unique_ptr<base::ReadableBytes>>()> open = {};
};

struct PublishRequest {
  std::string ref;
  std::string message;
  lineage::VersionPtr parent;  ///< null: the first version of an empty bucket
  lineage::VersionPtr base;  ///< version 0, more sources to code against; may be null or the parent
  std::vector<PublishFile> files;        ///< any order
  std::string temporary_folder;          ///< for objects until they are uploaded
  std::function<bool()> cancelled = {};  ///< asked often; true ends with `stale`
  /// Told what is being done, for status and progress: path, "encoding" or "uploading", done, total
  /// bytes. From several threads at once; must not block.
  std::function<void(const std::string&, const char*, std::uint64_t, std::uint64_t)> progress = {};
};

struct PublishOutcome {
  lineage::VersionPtr version;
  std::uint64_t file_count = 0;
  std::uint64_t full_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t meta_bytes = 0;
  double seconds = 0;
  std::vector<std::string>
      skipped;  ///< symlinks that lead out of the tree: no version can hold them
};

/// Publishes. `conflict` when another writer claimed the number first (the uploaded objects stay
/// and are found again by a retry on the new head). Writes version 0 and its claim too when
/// `parent` is a base (sequence 0) that the bucket does not have yet. `pool` threads encode.
Result<PublishOutcome> publish_version(lineage::Bucket& bucket, const PublishRequest& request,
                                       const ContentOpener& open_content, base::ThreadPool& pool);

/// A reason why a set of files is not whole yet.
struct IncompleteFile {
  std::string path;
  std::string reason;
};
/// Checks the safetensors files and shard indexes among `files` (only those that are not `known`
/// need reading): a file shorter than its header says; an index that names a shard which is not in
/// the tree. The set of a file is its folder: callers hold back all changed files of that folder.
Result<std::vector<IncompleteFile>> find_incomplete(const std::vector<PublishFile>& files);
/// Shards (`…-of-…` safetensors files) beside a new index that does not name them: left over from
/// an older set. They are published all the same; the user is told.
Result<std::vector<IncompleteFile>> find_stale_shards(const std::vector<PublishFile>& files);

}  // namespace hfd::publish
