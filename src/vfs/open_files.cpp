// SPDX-License-Identifier: Apache-2.0
#include "vfs/open_files.hpp"

namespace hfd::vfs {

OpenNodePtr OpenFiles::open_node(publish::NodeId id) {
  const base::Lock lock(mutex_);
  // Rows of nodes that were let go while an operation still held them; swept now and then.
  if (nodes_.size() > 2 * handles_.size() + 64) {
    std::erase_if(nodes_, [](const auto& row) { return row.second.expired(); });
  }
  std::weak_ptr<OpenNode>& known = nodes_[id];
  OpenNodePtr node = known.lock();
  if (!node) {
    node = std::make_shared<OpenNode>(id);
    known = node;
  }
  return node;
}

OpenNodePtr OpenFiles::find_node(publish::NodeId id) const {
  const base::Lock lock(mutex_);
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? nullptr : found->second.lock();
}

HandleId OpenFiles::add(Handle handle) {
  const base::Lock lock(mutex_);
  const HandleId id = next_++;
  handles_.emplace(id, std::make_shared<const Handle>(std::move(handle)));
  return id;
}

HandlePtr OpenFiles::find(HandleId id) const {
  const base::Lock lock(mutex_);
  const auto found = handles_.find(id);
  return found == handles_.end() ? nullptr : found->second;
}

HandlePtr OpenFiles::remove(HandleId id) {
  const base::Lock lock(mutex_);
  const auto found = handles_.find(id);
  if (found == handles_.end()) {
    return nullptr;
  }
  HandlePtr handle = std::move(found->second);
  handles_.erase(found);
  return handle;  // the node's row is weak: it goes stale with its last user and is swept later
}

}  // namespace hfd::vfs
