// SPDX-License-Identifier: Apache-2.0
// The read-only corner of a mount: `.hfdelta/versions/<id>/…`, `.hfdelta/refs/<ref>`, `.hfdelta/status.json`.
// Hands out inodes (view_bit set) for what is looked at and takes them back when the kernel forgets.
// Calls that may need the remote say so and are made on a worker, never on a thread of the kernel adapter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.hpp"
#include "rebuild/rebuilder.hpp"
#include "vfs/attributes.hpp"
#include "vfs/version_tree.hpp"

namespace hfd::vfs {

/// Where views get versions from. All may block on the remote.
struct VersionSource {
  std::function<Result<lineage::VersionPtr>(const VersionId&)> version;
  std::function<Result<std::vector<VersionId>>()> version_ids;
  std::function<Result<std::vector<std::pair<std::string, VersionId>>>()> refs;
  /// The text of status.json at this moment; must not block on the remote.
  std::function<std::string()> status;
};

inline constexpr Inode control_folder_inode = view_bit + 1;   ///< .hfdelta
inline constexpr Inode versions_folder_inode = view_bit + 2;  ///< .hfdelta/versions
inline constexpr Inode refs_folder_inode = view_bit + 3;      ///< .hfdelta/refs
inline constexpr Inode status_inode = view_bit + 4;           ///< .hfdelta/status.json
inline constexpr const char* control_folder_name = ".hfdelta";

class Views {
 public:
  Views(VersionSource source, std::uint32_t uid, std::uint32_t gid);

  static bool is_view(Inode inode) { return (inode & view_bit) != 0; }
  /// True when lookup() or list() in this folder may wait for the remote.
  bool may_block(Inode folder) const;

  /// Counts one lookup of the inode that it returns.
  Result<Attributes> lookup(Inode folder, const std::string& name);
  void forget(Inode inode, std::uint64_t count);
  Result<Attributes> get(Inode inode) const;
  Result<std::vector<FolderEntry>> list(Inode folder);
  Result<std::string> read_link(Inode inode) const;
  /// The content of a file of a version; invalid_argument for anything else.
  Result<rebuild::ContentRef> content(Inode inode) const;
  /// The version that an inode belongs to; not_found for the folders above versions.
  Result<lineage::VersionPtr> version_of(Inode inode) const;
  std::string status_text() const { return source_.status(); }

 private:
  struct InVersion {
    VersionTreePtr tree;
    std::uint32_t index = 0;
  };
  struct RefFolder {
    std::string prefix;  ///< "" or "a/b/"
  };
  struct RefLink {
    VersionId target;
    std::string path;  ///< what the link says: from its folder to the version
  };
  using What = std::variant<InVersion, RefFolder, RefLink>;
  struct Entry {
    What what;
    std::string key;  ///< names the same thing again while it is known
    std::uint64_t lookups = 0;
  };

  Result<What> find(Inode inode) const;
  Inode remember(const std::string& key, const What& what) HFD_EXCLUDES(mutex_);
  Result<VersionTreePtr> tree_of(const VersionId& id);
  Result<Attributes> lookup_version(const std::string& name);
  Result<Attributes> lookup_ref(const std::string& prefix, const std::string& name);
  Result<std::vector<FolderEntry>> list_refs(const std::string& prefix);
  Attributes attributes_of(Inode inode, const What& what) const;
  Attributes folder_attributes(Inode inode) const;

  const VersionSource source_;
  const std::uint32_t uid_;
  const std::uint32_t gid_;
  const base::UnixNanoseconds started_;

  mutable base::Mutex mutex_;
  Inode next_ HFD_GUARDED_BY(mutex_) = view_bit + 16;
  std::unordered_map<Inode, Entry> entries_ HFD_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Inode> by_key_ HFD_GUARDED_BY(mutex_);
  std::unordered_map<VersionId, std::weak_ptr<const VersionTree>> trees_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::vfs
