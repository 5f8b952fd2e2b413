// SPDX-License-Identifier: Apache-2.0
// The files of one version as a tree of folders. Immutable; made once per version that somebody looks
// into, shared by all inodes that show it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lineage/bucket.hpp"

namespace hfd::vfs {

class VersionTree {
 public:
  struct Node {
    std::string name;
    std::uint32_t parent = 0;
    const lineage::FileEntry* entry = nullptr;  ///< null for a folder that paths imply
    std::vector<std::uint32_t> children;        ///< by name; folders only
    bool is_folder() const { return entry == nullptr || entry->kind == lineage::FileEntry::Kind::folder; }
  };

  explicit VersionTree(lineage::VersionPtr version);
  const lineage::VersionPtr& version() const { return version_; }
  /// Node 0 is the root.
  const Node& node(std::uint32_t index) const { return nodes_[index]; }
  /// Index of a child, or 0 when there is none (the root is nobody's child).
  std::uint32_t child(std::uint32_t folder, std::string_view name) const;

 private:
  std::uint32_t child_or_new(std::uint32_t folder, std::string_view name);

  lineage::VersionPtr version_;
  std::vector<Node> nodes_;
};
using VersionTreePtr = std::shared_ptr<const VersionTree>;

}  // namespace hfd::vfs
