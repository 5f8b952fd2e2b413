// SPDX-License-Identifier: Apache-2.0
// What is open: handles (one an open()) and, for files of the work tree, the state that all handles of
// one node share: its data file, whether a write has been noted, who waits while it is being staged.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/mutex.hpp"
#include "rebuild/rebuilder.hpp"
#include "vfs/attributes.hpp"

namespace hfd::vfs {

using HandleId = std::uint64_t;
using SharedFd = std::shared_ptr<const base::Fd>;

/// One node of the work tree that is open. Shared by its handles.
struct OpenNode {
  explicit OpenNode(publish::NodeId node) : id(node) {}
  const publish::NodeId id;

  base::Mutex mutex;
  SharedFd data HFD_GUARDED_BY(mutex);                          ///< set once the node is staged here
  std::optional<rebuild::ContentRef> content HFD_GUARDED_BY(mutex);  ///< what it holds while published
  std::uint64_t content_bytes HFD_GUARDED_BY(mutex) = 0;
  bool dirty HFD_GUARDED_BY(mutex) = false;    ///< begin_writing() was noted and not settled since
  bool staging HFD_GUARDED_BY(mutex) = false;  ///< somebody is copying the old bytes in
  std::vector<std::function<void(Result<void>)>> waiting HFD_GUARDED_BY(mutex);  ///< for `staging` to end
  std::uint32_t writers HFD_GUARDED_BY(mutex) = 0;
};
using OpenNodePtr = std::shared_ptr<OpenNode>;

struct Handle {
  Inode inode = 0;
  bool writable = false;
  OpenNodePtr node;                             ///< files of the work tree
  std::optional<rebuild::ContentRef> content;   ///< files of a view
  std::uint64_t content_bytes = 0;
  std::string text;                             ///< status.json as it was at open
  std::vector<FolderEntry> entries;             ///< folders: the listing as it was at open
};
using HandlePtr = std::shared_ptr<const Handle>;

class OpenFiles {
 public:
  /// The shared state of a node, made when it is not open yet.
  OpenNodePtr open_node(publish::NodeId id);
  /// nullptr when no handle has it open.
  OpenNodePtr find_node(publish::NodeId id) const;
  HandleId add(Handle handle);
  /// nullptr for a number that was never given out or is released.
  HandlePtr find(HandleId id) const;
  /// Takes a handle out; nullptr as above.
  HandlePtr remove(HandleId id);
  bool is_open(publish::NodeId id) const { return find_node(id) != nullptr; }

 private:
  mutable base::Mutex mutex_;
  HandleId next_ HFD_GUARDED_BY(mutex_) = 1;
  std::unordered_map<HandleId, HandlePtr> handles_ HFD_GUARDED_BY(mutex_);
  mutable std::unordered_map<publish::NodeId, std::weak_ptr<OpenNode>> nodes_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::vfs
