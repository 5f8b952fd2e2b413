// SPDX-License-Identifier: Apache-2.0
#include "vfs/views.hpp"

#include <algorithm>
#include <optional>
#include <set>

namespace hfd::vfs {
namespace {

/// Versions never change.
constexpr std::chrono::milliseconds immutable_valid{3'600'000};
constexpr std::chrono::milliseconds moving_valid{1'000};

Error no_such_name(const std::string& name) { return Error{ErrorCode::not_found, "no such name", name}; }

std::string version_key(const VersionId& id, std::uint32_t index) { return id.hex() + ":" + std::to_string(index); }

/// One "../" for refs/ and one for each folder that the ref's name makes.
std::string link_path(const std::string& ref, const VersionId& target) {
  std::string path = "../";
  for (std::ptrdiff_t i = std::count(ref.begin(), ref.end(), '/'); i > 0; --i) {
    path += "../";
  }
  return path + "versions/" + target.hex();
}

NodeKind kind_of(const VersionTree::Node& node) {
  if (node.is_folder()) {
    return NodeKind::folder;
  }
  return node.entry->kind == lineage::FileEntry::Kind::symlink ? NodeKind::symlink : NodeKind::file;
}

}  // namespace

Views::Views(VersionSource source, std::uint32_t uid, std::uint32_t gid)
    : source_(std::move(source)), uid_(uid), gid_(gid), started_(base::now_utc()) {}

Attributes Views::folder_attributes(Inode inode) const {
  Attributes attributes;
  attributes.inode = inode;
  attributes.kind = NodeKind::folder;
  attributes.mode = 0555;
  attributes.links = 2;
  attributes.uid = uid_;
  attributes.gid = gid_;
  attributes.mtime = attributes.atime = attributes.ctime = started_;
  attributes.valid = moving_valid;
  return attributes;
}

bool Views::may_block(Inode folder) const {
  if (folder == versions_folder_inode || folder == refs_folder_inode) {
    return true;
  }
  const auto what = find(folder);
  return what.ok() && std::holds_alternative<RefFolder>(*what);
}

Result<Views::What> Views::find(Inode inode) const {
  const base::Lock lock(mutex_);
  const auto found = entries_.find(inode);
  if (found == entries_.end()) {
    return Error{ErrorCode::stale, "the inode is not known any more"};
  }
  return found->second.what;
}

Inode Views::remember(const std::string& key, const What& what) {
  const base::Lock lock(mutex_);
  auto [place, is_new] = by_key_.try_emplace(key, next_);
  if (is_new) {
    entries_.emplace(next_, Entry{what, key, 0});
    ++next_;
  }
  ++entries_.at(place->second).lookups;
  return place->second;
}

void Views::forget(Inode inode, std::uint64_t count) {
  std::optional<Entry> gone;  // a tree may be freed with it: after the lock
  const base::Lock lock(mutex_);
  const auto found = entries_.find(inode);
  if (found == entries_.end()) {
    return;
  }
  found->second.lookups -= std::min(count, found->second.lookups);
  if (found->second.lookups == 0) {
    by_key_.erase(found->second.key);
    gone = std::move(found->second);
    entries_.erase(found);
  }
}

Result<VersionTreePtr> Views::tree_of(const VersionId& id) {
  {
    const base::Lock lock(mutex_);
    if (const auto found = trees_.find(id); found != trees_.end()) {
      if (VersionTreePtr tree = found->second.lock()) {
        return tree;
      }
    }
  }
  HFD_TRY(lineage::VersionPtr version, source_.version(id));
  auto tree = std::make_shared<const VersionTree>(std::move(version));
  const base::Lock lock(mutex_);
  std::erase_if(trees_, [](const auto& known) { return known.second.expired(); });
  trees_[id] = tree;
  return tree;
}

Result<Attributes> Views::lookup(Inode folder, const std::string& name) {
  if (folder == control_folder_inode) {
    if (name == "versions") {
      return folder_attributes(versions_folder_inode);
    }
    if (name == "refs") {
      return folder_attributes(refs_folder_inode);
    }
    return name == "status.json" ? get(status_inode) : Result<Attributes>(no_such_name(name));
  }
  if (folder == versions_folder_inode) {
    return lookup_version(name);
  }
  if (folder == refs_folder_inode) {
    return lookup_ref("", name);
  }
  HFD_TRY(const What what, find(folder));
  if (const auto* refs = std::get_if<RefFolder>(&what)) {
    return lookup_ref(refs->prefix, name);
  }
  const auto* place = std::get_if<InVersion>(&what);
  if (place == nullptr) {
    return Error{ErrorCode::not_found, "not a folder", name};
  }
  const std::uint32_t child = place->tree->child(place->index, name);
  if (child == 0) {
    return no_such_name(name);
  }
  const What found = InVersion{place->tree, child};
  return attributes_of(remember(version_key(place->tree->version()->id, child), found), found);
}

Result<Attributes> Views::lookup_version(const std::string& name) {
  const auto id = VersionId::from_hex(name);
  if (!id.ok() || id->hex() != name) {
    return no_such_name(name);
  }
  HFD_TRY(VersionTreePtr tree, tree_of(*id));
  const What what = InVersion{std::move(tree), 0};
  return attributes_of(remember(version_key(*id, 0), what), what);
}

Result<Attributes> Views::lookup_ref(const std::string& prefix, const std::string& name) {
  HFD_TRY(const auto refs, source_.refs());
  const std::string full = prefix + name;
  for (const auto& [ref, target] : refs) {
    if (ref == full) {
      const What what = RefLink{target, link_path(ref, target)};
      return attributes_of(remember("ref:" + ref + "=" + target.hex(), what), what);
    }
    if (ref.starts_with(full + "/")) {
      const What what = RefFolder{full + "/"};
      return attributes_of(remember("refs:" + full, what), what);
    }
  }
  return no_such_name(name);
}

Result<Attributes> Views::get(Inode inode) const {
  if (inode == control_folder_inode || inode == versions_folder_inode || inode == refs_folder_inode) {
    return folder_attributes(inode);
  }
  if (inode == status_inode) {
    Attributes attributes = folder_attributes(inode);
    attributes.kind = NodeKind::file;
    attributes.mode = 0444;
    attributes.links = 1;
    attributes.bytes = source_.status().size();
    attributes.valid = std::chrono::milliseconds(0);
    attributes.mtime = base::now_utc();
    return attributes;
  }
  HFD_TRY(const What what, find(inode));
  return attributes_of(inode, what);
}

Attributes Views::attributes_of(Inode inode, const What& what) const {
  Attributes attributes = folder_attributes(inode);
  if (const auto* link = std::get_if<RefLink>(&what)) {
    attributes.kind = NodeKind::symlink;
    attributes.mode = 0777;
    attributes.links = 1;
    attributes.bytes = link->path.size();
    return attributes;
  }
  const auto* place = std::get_if<InVersion>(&what);
  if (place == nullptr) {
    return attributes;
  }
  attributes.valid = immutable_valid;
  const VersionTree::Node& node = place->tree->node(place->index);
  attributes.mtime = attributes.ctime = attributes.atime = place->tree->version()->manifest.time;
  attributes.kind = kind_of(node);
  if (node.entry != nullptr) {
    attributes.mtime = attributes.ctime = attributes.atime = node.entry->mtime;
  }
  if (attributes.kind == NodeKind::file) {
    attributes.mode = node.entry->executable ? 0555 : 0444;
    attributes.bytes = attributes.allocated_bytes = node.entry->bytes;
    attributes.links = 1;
  } else if (attributes.kind == NodeKind::symlink) {
    attributes.mode = 0777;
    attributes.bytes = node.entry->symlink_target.size();
    attributes.links = 1;
  }
  return attributes;
}

Result<std::vector<FolderEntry>> Views::list(Inode folder) {
  std::vector<FolderEntry> entries;
  if (folder == control_folder_inode) {
    entries.push_back({"refs", refs_folder_inode, NodeKind::folder});
    entries.push_back({"status.json", status_inode, NodeKind::file});
    entries.push_back({"versions", versions_folder_inode, NodeKind::folder});
    return entries;
  }
  if (folder == versions_folder_inode) {
    HFD_TRY(const std::vector<VersionId> ids, source_.version_ids());
    for (const VersionId& id : ids) {
      entries.push_back({id.hex(), view_bit, NodeKind::folder});
    }
    return entries;
  }
  if (folder == refs_folder_inode) {
    return list_refs("");
  }
  HFD_TRY(const What what, find(folder));
  if (const auto* refs = std::get_if<RefFolder>(&what)) {
    return list_refs(refs->prefix);
  }
  if (const auto* place = std::get_if<InVersion>(&what)) {
    for (const std::uint32_t index : place->tree->node(place->index).children) {
      const VersionTree::Node& node = place->tree->node(index);
      entries.push_back({node.name, view_bit, kind_of(node)});
    }
  }
  return entries;
}

Result<std::vector<FolderEntry>> Views::list_refs(const std::string& prefix) {
  HFD_TRY(const auto refs, source_.refs());
  std::vector<FolderEntry> entries;
  std::set<std::string> folders;
  for (const auto& [ref, target] : refs) {
    if (!ref.starts_with(prefix)) {
      continue;
    }
    const std::string rest = ref.substr(prefix.size());
    const std::size_t slash = rest.find('/');
    if (slash == std::string::npos) {
      entries.push_back({rest, view_bit, NodeKind::symlink});
    } else if (folders.insert(rest.substr(0, slash)).second) {
      entries.push_back({rest.substr(0, slash), view_bit, NodeKind::folder});
    }
  }
  return entries;
}

Result<std::string> Views::read_link(Inode inode) const {
  HFD_TRY(const What what, find(inode));
  if (const auto* link = std::get_if<RefLink>(&what)) {
    return link->path;
  }
  if (const auto* place = std::get_if<InVersion>(&what)) {
    const VersionTree::Node& node = place->tree->node(place->index);
    if (kind_of(node) == NodeKind::symlink) {
      return node.entry->symlink_target;
    }
  }
  return Error{ErrorCode::invalid_argument, "not a symbolic link"};
}

Result<rebuild::ContentRef> Views::content(Inode inode) const {
  HFD_TRY(const What what, find(inode));
  const auto* place = std::get_if<InVersion>(&what);
  if (place == nullptr || kind_of(place->tree->node(place->index)) != NodeKind::file) {
    return Error{ErrorCode::invalid_argument, "not a file of a version"};
  }
  return rebuild::ContentRef{place->tree->version(), place->tree->node(place->index).entry->sha256};
}

Result<lineage::VersionPtr> Views::version_of(Inode inode) const {
  const auto what = find(inode);
  if (what.ok()) {
    if (const auto* place = std::get_if<InVersion>(&*what)) {
      return place->tree->version();
    }
  }
  return Error{ErrorCode::not_found, "not inside a version"};
}

}  // namespace hfd::vfs
