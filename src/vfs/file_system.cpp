// SPDX-License-Identifier: Apache-2.0
#include "vfs/file_system.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>

namespace hfd::vfs {
namespace {

constexpr const char* version_attribute = "user.hfdeltafs.version";
constexpr const char* sha256_attribute = "user.hfdeltafs.sha256";
/// Copies and look-ups that may wait for the remote; few, as each is long or rare.
constexpr std::size_t stager_count = 4;
constexpr std::size_t looker_count = 2;
constexpr std::size_t list_step = 1024;

Error read_only_error() {
  Error error{ErrorCode::read_only, "the file system is read-only"};
  error.os_errno = EROFS;
  return error;
}

}  // namespace

FileSystem::FileSystem(publish::WorkTree& tree, publish::Syncer& syncer, rebuild::Rebuilder& rebuilder,
                       VersionSource versions, const FileSystemOptions& options)
    : tree_(tree),
      syncer_(syncer),
      rebuilder_(rebuilder),
      views_(std::move(versions), options.uid, options.gid),
      options_(options),
      stagers_(std::make_unique<base::ThreadPool>("hfd-stage", stager_count)),
      lookers_(std::make_unique<base::ThreadPool>("hfd-look", looker_count)) {}

FileSystem::~FileSystem() { finish(); }

void FileSystem::finish() {
  stagers_.reset();
  lookers_.reset();
}

Result<void> FileSystem::check_writable(Inode inode) const {
  if (options_.read_only || Views::is_view(inode)) {
    return read_only_error();
  }
  return {};
}

Attributes FileSystem::attributes_of(const publish::Node& node) {
  Attributes attributes;
  attributes.inode = node.id;
  attributes.kind = node.kind;
  attributes.mode = node.mode;
  attributes.uid = node.uid;
  attributes.gid = node.gid;
  attributes.bytes = attributes.allocated_bytes = node.bytes;
  attributes.links = node.kind == NodeKind::folder ? 2 : node.parent == 0 ? 0 : 1;
  attributes.mtime = node.mtime;
  attributes.atime = node.atime;
  attributes.ctime = node.ctime;
  if (node.kind != NodeKind::file || node.place != publish::Place::staged) {
    return attributes;
  }
  // While it is being written the data file knows best; the row is brought up to date at close.
  if (const OpenNodePtr open = open_.find_node(node.id)) {
    SharedFd data;
    bool dirty = false;
    {
      const base::Lock lock(open->mutex);
      data = open->data;
      dirty = open->dirty;
    }
    struct stat status {};
    if (data && ::fstat(data->get(), &status) == 0) {
      attributes.allocated_bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
      if (dirty) {
        attributes.bytes = static_cast<std::uint64_t>(status.st_size);
        attributes.mtime = status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec;
        attributes.ctime = std::max(attributes.ctime, attributes.mtime);
      }
    }
  }
  return attributes;
}

void FileSystem::count_lookup(Inode inode) {
  const base::Lock lock(mutex_);
  ++lookups_[inode];
}

void FileSystem::lookup(Inode folder, const std::string& name, Take<Attributes> take) {
  if (folder == root_inode && name == control_folder_name) {
    take(views_.get(control_folder_inode));
    return;
  }
  if (Views::is_view(folder)) {
    if (views_.may_block(folder)) {
      lookers_->post([this, folder, name, take = std::move(take)] { take(views_.lookup(folder, name)); });
    } else {
      take(views_.lookup(folder, name));
    }
    return;
  }
  auto node = tree_.lookup(folder, name);
  if (!node.ok()) {
    take(std::move(node).error());
    return;
  }
  count_lookup(node->id);
  take(attributes_of(*node));
}

void FileSystem::forget(Inode inode, std::uint64_t count) {
  if (Views::is_view(inode)) {
    views_.forget(inode, count);
    return;
  }
  {
    const base::Lock lock(mutex_);
    const auto found = lookups_.find(inode);
    if (found == lookups_.end()) {
      return;
    }
    found->second -= std::min(count, found->second);
    if (found->second > 0) {
      return;
    }
    lookups_.erase(found);
  }
  drop_if_unused(inode);
}

/// A node without a name goes when neither a handle nor the kernel knows it any more.
void FileSystem::drop_if_unused(Inode inode) {
  if (inode == root_inode || open_.is_open(inode)) {
    return;
  }
  {
    const base::Lock lock(mutex_);
    if (lookups_.count(inode) > 0) {
      return;
    }
  }
  if (const auto node = tree_.get(inode); node.ok() && node->parent == 0) {
    tree_.drop(inode);
  }
}

Result<Attributes> FileSystem::get(Inode inode) {
  if (Views::is_view(inode)) {
    return views_.get(inode);
  }
  HFD_TRY(const publish::Node node, tree_.get(inode));
  return attributes_of(node);
}

void FileSystem::set(Inode inode, const AttributeSet& set, Take<Attributes> take) {
  if (auto writable = check_writable(inode); !writable.ok()) {
    take(std::move(writable).error());
    return;
  }
  const auto rest = [this, inode, change = set.change, take](Result<void> resized) {
    if (!resized.ok()) {
      take(std::move(resized).error());
      return;
    }
    if (const OpenNodePtr open = open_.find_node(inode); open && (change.mtime || change.atime)) {
      SharedFd data;
      {
        const base::Lock lock(open->mutex);
        data = open->data;
      }
      // The data file's own mtime is what close() notes, so it has to say what the user set.
      const auto spec = [](const std::optional<base::UnixNanoseconds>& time) {
        return time ? timespec{*time / 1'000'000'000, *time % 1'000'000'000} : timespec{0, UTIME_OMIT};
      };
      const timespec times[2] = {spec(change.atime), spec(change.mtime)};
      if (data && ::futimens(data->get(), times) != 0) {
        take(base::os_error(errno, "cannot set times", "staged file"));
        return;
      }
    }
    auto node = tree_.set_attributes(inode, change);
    take(node.ok() ? Result<Attributes>(attributes_of(*node)) : Result<Attributes>(std::move(node).error()));
  };
  if (set.bytes) {
    resize(inode, *set.bytes, rest);
  } else {
    rest({});
  }
}

Result<std::string> FileSystem::read_link(Inode inode) {
  if (Views::is_view(inode)) {
    return views_.read_link(inode);
  }
  HFD_TRY(publish::Node node, tree_.get(inode));
  if (node.kind != NodeKind::symlink) {
    return Error{ErrorCode::invalid_argument, "not a symbolic link"};
  }
  return std::move(node.symlink_target);
}

Result<Attributes> FileSystem::make_folder(const publish::NewNode& node) {
  HFD_TRY_VOID(check_writable(node.parent));
  HFD_TRY(const publish::Node made, tree_.make_folder(node));
  count_lookup(made.id);
  return attributes_of(made);
}

Result<Attributes> FileSystem::make_symlink(const publish::NewNode& node, const std::string& target) {
  HFD_TRY_VOID(check_writable(node.parent));
  HFD_TRY(const publish::Node made, tree_.make_symlink(node, target));
  count_lookup(made.id);
  return attributes_of(made);
}

bool FileSystem::is_version_root(Inode inode, const std::string& name) const {
  return inode == root_inode && name == control_folder_name;
}

Result<void> FileSystem::unlink(Inode folder, const std::string& name) {
  HFD_TRY_VOID(check_writable(folder));
  if (is_version_root(folder, name)) {
    return read_only_error();
  }
  HFD_TRY(const publish::Node victim, tree_.lookup(folder, name));
  HFD_TRY([[maybe_unused]] const publish::Node gone, tree_.unlink(folder, name, open_.is_open(victim.id)));
  return {};
}

Result<void> FileSystem::remove_folder(Inode folder, const std::string& name) {
  HFD_TRY_VOID(check_writable(folder));
  if (is_version_root(folder, name)) {
    return read_only_error();
  }
  return tree_.remove_folder(folder, name);
}

Result<void> FileSystem::rename(Inode folder, const std::string& name, Inode new_folder, const std::string& new_name,
                                publish::RenameMode mode) {
  HFD_TRY_VOID(check_writable(folder));
  HFD_TRY_VOID(check_writable(new_folder));
  if (is_version_root(folder, name) || is_version_root(new_folder, new_name)) {
    return read_only_error();
  }
  return tree_.rename(folder, name, new_folder, new_name, mode,
                      [this](publish::NodeId id) { return open_.is_open(id); });
}

void FileSystem::open_folder(Inode inode, Take<HandleId> take) {
  const auto finish = [this, inode](Result<std::vector<FolderEntry>> entries) -> Result<HandleId> {
    HFD_TRY(std::vector<FolderEntry> listed, std::move(entries));
    Handle handle;
    handle.inode = inode;
    handle.entries = std::move(listed);
    return open_.add(std::move(handle));
  };
  if (Views::is_view(inode)) {
    if (views_.may_block(inode)) {
      lookers_->post([this, inode, finish, take = std::move(take)] { take(finish(views_.list(inode))); });
    } else {
      take(finish(views_.list(inode)));
    }
    return;
  }
  std::vector<FolderEntry> entries;
  std::string after;
  while (true) {
    auto step = tree_.list(inode, after, list_step);
    if (!step.ok()) {
      take(std::move(step).error());
      return;
    }
    for (const publish::Node& node : *step) {
      entries.push_back({node.name, node.id, node.kind});
    }
    if (step->size() < list_step) {
      break;
    }
    after = step->back().name;
  }
  take(finish(std::move(entries)));
}

Result<HandlePtr> FileSystem::folder(HandleId handle) const {
  HandlePtr found = open_.find(handle);
  if (!found) {
    return Error{ErrorCode::invalid_argument, "no such open folder"};
  }
  return found;
}

Result<SpaceInfo> FileSystem::space() const {
  struct statvfs status {};
  if (::statvfs(tree_.folder().c_str(), &status) != 0) {
    return base::os_error(errno, "cannot look at the space of", tree_.folder());
  }
  SpaceInfo space;
  space.block_bytes = status.f_frsize;
  space.blocks = status.f_blocks;
  space.blocks_free = status.f_bavail;
  space.files = status.f_files;
  space.files_free = status.f_ffree;
  return space;
}

Result<std::string> FileSystem::attribute(Inode inode, const std::string& name) {
  const bool is_sha256 = name == sha256_attribute;
  const Error none{ErrorCode::not_found, "no such attribute", name};
  if (name != version_attribute && !is_sha256) {
    return none;
  }
  if (Views::is_view(inode)) {
    HFD_TRY(const lineage::VersionPtr version, views_.version_of(inode));
    if (!is_sha256) {
      return version->id.hex();
    }
    const auto content = views_.content(inode);
    return content.ok() ? Result<std::string>(content->sha256.hex()) : Result<std::string>(none);
  }
  HFD_TRY(const publish::Node node, tree_.get(inode));
  const bool staged = node.kind == NodeKind::file && node.place == publish::Place::staged;
  if (is_sha256) {
    const bool has_hash = node.kind == NodeKind::file && !staged;
    return has_hash ? Result<std::string>(node.content.hex()) : Result<std::string>(none);
  }
  const lineage::VersionPtr version = syncer_.current();
  if (staged || !version) {
    return std::string("staging");
  }
  return version->id.hex();
}

std::vector<std::string> FileSystem::attribute_names(Inode inode) {
  std::vector<std::string> names;
  for (const char* name : {version_attribute, sha256_attribute}) {
    if (attribute(inode, name).ok()) {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace hfd::vfs
