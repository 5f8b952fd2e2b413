// SPDX-License-Identifier: Apache-2.0
// The native layout on a remote: objects, manifests, refs, tags. Everything that names a version
// goes through here. Blocking calls: for publish, follow and CLI threads. Thread-safe.
//
// Layout (design.md section 4):
//   hfdelta/format                  "hfdeltafs 0\n"
//   hfdelta/versions/<id>.json      manifest
//   hfdelta/deltas/<id>.hfd         delta object        hfdelta/blobs/<id>   literal content
//   hfdelta/refs/<ref>/<seq>        claim, 10 digits, content = version id + "\n"
//   hfdelta/refs/<ref>/head         hint
// A tag NAME is the ref "tags/NAME".
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "lineage/manifest.hpp"
#include "remote/remote.hpp"

namespace hfd::lineage {

struct Claim;

/// Where a ref stands.
struct RefState {
  VersionId version;
  std::uint64_t sequence = 0;
};

std::string version_object(const VersionId& id);
std::string delta_object(const ObjectId& id);
std::string blob_object(const ObjectId& id);
/// The object that an edge's bytes are in; empty for upstream.
std::string object_of(const Edge& edge);

/// One version with its id and manifest, immutable, shared by all who read it.
struct Version {
  VersionId id;
  Manifest manifest;
  std::uint64_t manifest_bytes = 0;
};
using VersionPtr = std::shared_ptr<const Version>;
/// A manifest as the version it is, without storing it (a base that is not published).
Result<VersionPtr> make_version(const Manifest& manifest);

class Bucket {
 public:
  /// `remote` must outlive the bucket. Nothing is read or written yet.
  Bucket(remote::Remote& remote, std::chrono::milliseconds deadline);

  remote::Remote& remote() { return remote_; }
  /// True when hfdelta/format is there; unsupported when it names a layout that we do not know.
  Result<bool> is_initialised();
  /// Writes hfdelta/format unless it is there.
  Result<void> initialise();

  /// The newest claimed version of a ref; nothing when the ref does not exist. Starts at the hint
  /// and looks upward; the hint is never trusted alone.
  Result<std::optional<RefState>> head(const std::string& ref);
  /// All refs, tags included, sorted.
  Result<std::vector<std::string>> refs();
  /// Claims number `sequence` of `ref` for `version`, then writes the hint. `conflict` when another
  /// writer has that number. Claiming the same version twice is fine (resume after a crash).
  Result<void> claim(const std::string& ref, std::uint64_t sequence, const VersionId& version);
  /// Version 0 of the base that a ref (or else main) began with; nullptr when it began without one.
  Result<VersionPtr> base_version(const std::string& ref);
  /// Removes all claims of a ref.
  Result<void> remove_ref(const std::string& ref);

  /// A manifest, verified against its id. Kept in memory for later calls (bounded).
  Result<VersionPtr> version(const VersionId& id);
  /// Puts the manifest; returns its id.
  Result<VersionPtr> put_version(const Manifest& manifest);
  /// Ids of all stored manifests.
  Result<std::vector<VersionId>> version_ids();

  /// What a user may write for a VERSION: 64 hex or a unique prefix of 6 or more, a ref, a tag,
  /// "head", "head~N", "vN". not_found otherwise; invalid_argument when a prefix is ambiguous.
  Result<VersionId> resolve(const std::string& text, const std::string& ref);
  /// Newest first, from the head of `ref` along parents, at most `count_max`.
  Result<std::vector<VersionPtr>> history(const std::string& ref, std::size_t count_max);

 private:
  class Cache;
  base::Deadline deadline() const;
  Result<VersionId> read_claim(const std::string& ref, const Claim& claim);
  /// Nothing when the hint is missing, wrong or too old.
  Result<std::optional<RefState>> head_by_hint(const std::string& ref);
  Result<VersionId> head_or_not_found(const std::string& ref);
  /// The first version from `from` along parents for which `is_it` (told the steps gone) is true.
  Result<VersionId> ancestor(const VersionId& from, const std::string& text,
                             const std::function<bool(const Version&, std::uint64_t)>& is_it);
  Result<std::optional<VersionId>> resolve_ref(const std::string& name);
  Result<VersionId> resolve_prefix(const std::string& text);

  remote::Remote& remote_;
  std::chrono::milliseconds deadline_;
  std::shared_ptr<Cache> cache_;
};

/// Names a base folder as version 0: every file `upstream`, sequence 0, no parent. Files are read
/// once to learn their sha256 (`threads` of the pool). Symlinks inside the tree are followed into
/// files.
Result<Manifest> manifest_of_base(remote::Remote& base, base::ThreadPool& pool);

}  // namespace hfd::lineage
