// SPDX-License-Identifier: Apache-2.0
// What the file system says about an inode, in terms of no kernel: the fuse layer turns it into stat.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "hfdeltafs/result.hpp"
#include "publish/work_tree.hpp"

namespace hfd::vfs {

/// Inode number as the kernel knows it. Nodes of the work tree keep their NodeId; inodes of views
/// (".hfdelta" and all below) have view_bit set. One number = one content; never used again in a mount.
using Inode = std::uint64_t;
inline constexpr Inode root_inode = publish::root_node;
inline constexpr Inode view_bit = 1ULL << 62U;

using publish::NodeKind;

struct Attributes {
  Inode inode = 0;
  NodeKind kind = NodeKind::file;
  std::uint32_t mode = 0;  ///< permission bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t bytes = 0;
  std::uint64_t allocated_bytes = 0;  ///< shown as st_blocks: the size for published files, real blocks for staged ones
  std::uint32_t links = 1;
  base::UnixNanoseconds mtime = 0;
  base::UnixNanoseconds atime = 0;
  base::UnixNanoseconds ctime = 0;
  /// How long the kernel may trust this without asking.
  std::chrono::milliseconds valid{1000};
};

struct FolderEntry {
  std::string name;
  Inode inode = 0;
  NodeKind kind = NodeKind::file;
};

/// A call-back that takes an answer; runs once, on any thread.
template <class T>
using Take = std::function<void(Result<T>)>;

}  // namespace hfd::vfs
