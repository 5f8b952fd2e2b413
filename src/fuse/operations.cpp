// SPDX-License-Identifier: Apache-2.0
#include "fuse/operations.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "base/log.hpp"
#include "fuse/errno.hpp"

namespace hfd::fuse {
namespace {

using publish::NewNode;
using vfs::Attributes;
using vfs::FileSystem;
using vfs::NodeKind;

constexpr unsigned request_bytes_max = 1U << 20U;
constexpr unsigned background_max = 64;
constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;

FileSystem& files_of(fuse_req_t request) { return *static_cast<Context*>(fuse_req_userdata(request))->files; }

/// The one edge for exceptions: none crosses into libfuse.
template <class Body>
void guarded(fuse_req_t request, const char* operation, const Body& body) noexcept {
  try {
    body();
  } catch (const std::bad_alloc&) {
    fuse_reply_err(request, ENOMEM);
  } catch (const std::exception& failure) {
    base::log(base::LogLevel::error, std::string(operation) + ": unexpected: " + failure.what());
    fuse_reply_err(request, EIO);
  }
}

void reply_error(fuse_req_t request, const char* operation, fuse_ino_t inode, const Error& error, int number) {
  // Names that are not there, read-only views and the like are ordinary answers.
  if (number == EIO || number == ENOSPC) {
    base::log(base::LogLevel::warning, std::string(operation) + " inode " + std::to_string(inode) + ": " +
                                           std::string(error_code_name(error.code)) + ": " + error.message +
                                           (error.object.empty() ? "" : ": " + error.object));
  }
  fuse_reply_err(request, number);
}

void reply_done(fuse_req_t request, const char* operation, fuse_ino_t inode, const Result<void>& result) {
  if (result.ok()) {
    fuse_reply_err(request, 0);
  } else {
    reply_error(request, operation, inode, result.error(), errno_of(result.error()));
  }
}

timespec to_timespec(base::UnixNanoseconds time) {
  std::int64_t seconds = time / nanoseconds_per_second;
  std::int64_t rest = time % nanoseconds_per_second;
  if (rest < 0) {
    rest += nanoseconds_per_second;
    --seconds;
  }
  return timespec{seconds, rest};
}

base::UnixNanoseconds from_timespec(const timespec& time) {
  return time.tv_sec * nanoseconds_per_second + time.tv_nsec;
}

mode_t type_bits(NodeKind kind) {
  switch (kind) {
    case NodeKind::file: return S_IFREG;
    case NodeKind::folder: return S_IFDIR;
    case NodeKind::symlink: return S_IFLNK;
  }
  return S_IFREG;
}

struct stat to_stat(const Attributes& attributes) {
  struct stat status {};
  status.st_ino = attributes.inode;
  status.st_mode = type_bits(attributes.kind) | attributes.mode;
  status.st_nlink = attributes.links;
  status.st_uid = attributes.uid;
  status.st_gid = attributes.gid;
  status.st_size = static_cast<off_t>(attributes.bytes);
  status.st_blocks = static_cast<blkcnt_t>((attributes.allocated_bytes + 511) / 512);
  status.st_blksize = request_bytes_max;
  status.st_mtim = to_timespec(attributes.mtime);
  status.st_atim = to_timespec(attributes.atime);
  status.st_ctim = to_timespec(attributes.ctime);
  return status;
}

double seconds_valid(const Attributes& attributes) { return static_cast<double>(attributes.valid.count()) / 1000.0; }

fuse_entry_param to_entry(const Attributes& attributes) {
  fuse_entry_param entry{};
  entry.ino = attributes.inode;
  entry.generation = 1;  // numbers are never used again
  entry.attr = to_stat(attributes);
  entry.attr_timeout = seconds_valid(attributes);
  entry.entry_timeout = seconds_valid(attributes);
  return entry;
}

vfs::Take<Attributes> take_entry(fuse_req_t request, const char* operation, fuse_ino_t inode) {
  return [request, operation, inode](Result<Attributes> attributes) {
    if (!attributes.ok()) {
      reply_error(request, operation, inode, attributes.error(), errno_of(attributes.error()));
      return;
    }
    const fuse_entry_param entry = to_entry(*attributes);
    fuse_reply_entry(request, &entry);
  };
}

NewNode new_node(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) {
  const fuse_ctx* caller = fuse_req_ctx(request);
  return NewNode{parent, name, static_cast<std::uint32_t>(mode & 07777U), caller->uid, caller->gid};
}

bool opens_for_writing(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

// --- life of the session ---

void on_init(void* userdata, fuse_conn_info* connection) noexcept {
  // Truncation comes as a setattr of its own; all changes go through this kernel, so attributes that change
  // never mean that cached pages are wrong; splice loses on requests of 1 MiB (reference fuse.md).
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ |
                                             FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  connection->max_write = request_bytes_max;
  connection->max_background = background_max;
  connection->congestion_threshold = background_max * 3 / 4;
  auto* context = static_cast<Context*>(userdata);
  if (context->ready) {
    context->ready();
  }
}

// --- names ---

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) noexcept {
  guarded(request, "lookup", [&] { files_of(request).lookup(parent, name, take_entry(request, "lookup", parent)); });
}

void on_forget(fuse_req_t request, fuse_ino_t inode, std::uint64_t count) noexcept {
  files_of(request).forget(inode, count);
  fuse_reply_none(request);
}

void on_forget_multi(fuse_req_t request, std::size_t count, fuse_forget_data* forgets) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    files_of(request).forget(forgets[i].ino, forgets[i].nlookup);
  }
  fuse_reply_none(request);
}

void reply_attributes(fuse_req_t request, const char* operation, fuse_ino_t inode, const Result<Attributes>& got) {
  if (!got.ok()) {
    reply_error(request, operation, inode, got.error(), errno_of(got.error()));
    return;
  }
  const struct stat status = to_stat(*got);
  fuse_reply_attr(request, &status, seconds_valid(*got));
}

void on_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*file*/) noexcept {
  guarded(request, "getattr", [&] { reply_attributes(request, "getattr", inode, files_of(request).get(inode)); });
}

void on_setattr(fuse_req_t request, fuse_ino_t inode, struct stat* wanted, int to_set, fuse_file_info* /*file*/) noexcept {
  guarded(request, "setattr", [&] {
    const auto flag = [to_set](int bit) { return (to_set & bit) != 0; };
    vfs::AttributeSet set;
    if (flag(FUSE_SET_ATTR_MODE)) {
      set.change.mode = wanted->st_mode & 07777U;
    }
    if (flag(FUSE_SET_ATTR_UID)) {
      set.change.uid = wanted->st_uid;
    }
    if (flag(FUSE_SET_ATTR_GID)) {
      set.change.gid = wanted->st_gid;
    }
    if (flag(FUSE_SET_ATTR_SIZE)) {
      set.bytes = static_cast<std::uint64_t>(wanted->st_size);
    }
    if (flag(FUSE_SET_ATTR_MTIME)) {
      set.change.mtime = flag(FUSE_SET_ATTR_MTIME_NOW) ? base::now_utc() : from_timespec(wanted->st_mtim);
    }
    if (flag(FUSE_SET_ATTR_ATIME)) {
      set.change.atime = flag(FUSE_SET_ATTR_ATIME_NOW) ? base::now_utc() : from_timespec(wanted->st_atim);
    }
    files_of(request).set(inode, set, [request, inode](Result<Attributes> attributes) {
      reply_attributes(request, "setattr", inode, attributes);
    });
  });
}

void on_readlink(fuse_req_t request, fuse_ino_t inode) noexcept {
  guarded(request, "readlink", [&] {
    const auto target = files_of(request).read_link(inode);
    if (target.ok()) {
      fuse_reply_readlink(request, target->c_str());
    } else {
      reply_error(request, "readlink", inode, target.error(), errno_of(target.error()));
    }
  });
}

void on_mknod(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, dev_t /*device*/) noexcept {
  guarded(request, "mknod", [&] {
    if (!S_ISREG(mode)) {
      fuse_reply_err(request, EPERM);  // a model folder has no devices, pipes or sockets
      return;
    }
    const auto created = files_of(request).create(new_node(request, parent, name, mode), true);
    if (!created.ok()) {
      reply_error(request, "mknod", parent, created.error(), errno_of(created.error()));
      return;
    }
    files_of(request).release(created->handle);
    const fuse_entry_param entry = to_entry(created->attributes);
    fuse_reply_entry(request, &entry);
  });
}

void on_mkdir(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode) noexcept {
  guarded(request, "mkdir", [&] {
    take_entry(request, "mkdir", parent)(files_of(request).make_folder(new_node(request, parent, name, mode)));
  });
}

void on_symlink(fuse_req_t request, const char* target, fuse_ino_t parent, const char* name) noexcept {
  guarded(request, "symlink", [&] {
    take_entry(request, "symlink", parent)(
        files_of(request).make_symlink(new_node(request, parent, name, 0777), target));
  });
}

void on_unlink(fuse_req_t request, fuse_ino_t parent, const char* name) noexcept {
  guarded(request, "unlink", [&] { reply_done(request, "unlink", parent, files_of(request).unlink(parent, name)); });
}

void on_rmdir(fuse_req_t request, fuse_ino_t parent, const char* name) noexcept {
  guarded(request, "rmdir",
          [&] { reply_done(request, "rmdir", parent, files_of(request).remove_folder(parent, name)); });
}

void on_link(fuse_req_t request, fuse_ino_t /*inode*/, fuse_ino_t /*parent*/, const char* /*name*/) noexcept {
  fuse_reply_err(request, EPERM);  // one name, one file: programs fall back to a copy or a rename
}

void on_rename(fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent, const char* new_name,
               unsigned flags) noexcept {
  guarded(request, "rename", [&] {
    publish::RenameMode mode = publish::RenameMode::replace;
    if (flags == RENAME_NOREPLACE) {
      mode = publish::RenameMode::no_replace;
    } else if (flags == RENAME_EXCHANGE) {
      mode = publish::RenameMode::exchange;
    } else if (flags != 0) {
      fuse_reply_err(request, EINVAL);
      return;
    }
    reply_done(request, "rename", parent, files_of(request).rename(parent, name, new_parent, new_name, mode));
  });
}

// --- folders ---

void on_opendir(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) noexcept {
  guarded(request, "opendir", [&] {
    files_of(request).open_folder(inode, [request, inode, info = *file](Result<vfs::HandleId> handle) mutable {
      if (!handle.ok()) {
        reply_error(request, "opendir", inode, handle.error(), errno_of(handle.error()));
        return;
      }
      info.fh = *handle;
      fuse_reply_open(request, &info);
    });
  });
}

void on_readdir(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info* file) noexcept {
  guarded(request, "readdir", [&] {
    const auto folder = files_of(request).folder(file->fh);
    if (!folder.ok()) {
      reply_error(request, "readdir", inode, folder.error(), errno_of(folder.error()));
      return;
    }
    std::vector<char> out(size);
    std::size_t used = 0;
    const auto add = [&](const char* name, vfs::Inode number, mode_t type, off_t next) {
      struct stat status {};
      status.st_ino = number;
      status.st_mode = type;
      const std::size_t needed = fuse_add_direntry(request, out.data() + used, size - used, name, &status, next);
      if (needed > size - used) {
        return false;
      }
      used += needed;
      return true;
    };
    // Positions 0 and 1 are "." and "..", entry i is position i + 2.
    const auto& entries = (*folder)->entries;
    auto position = static_cast<std::size_t>(offset);
    bool fits = true;
    for (; fits && position < entries.size() + 2; ++position) {
      const auto next = static_cast<off_t>(position + 1);
      if (position < 2) {
        fits = add(position == 0 ? "." : "..", inode, S_IFDIR, next);
      } else {
        const vfs::FolderEntry& entry = entries[position - 2];
        fits = add(entry.name.c_str(), entry.inode, type_bits(entry.kind), next);
      }
    }
    fuse_reply_buf(request, out.data(), used);
  });
}

void on_releasedir(fuse_req_t request, fuse_ino_t /*inode*/, fuse_file_info* file) noexcept {
  guarded(request, "releasedir", [&] {
    files_of(request).release(file->fh);
    fuse_reply_err(request, 0);
  });
}

void on_fsyncdir(fuse_req_t request, fuse_ino_t inode, int /*datasync*/, fuse_file_info* /*file*/) noexcept {
  guarded(request, "fsyncdir", [&] { reply_done(request, "fsyncdir", inode, files_of(request).sync_names()); });
}

// --- bytes ---

void on_create(fuse_req_t request, fuse_ino_t parent, const char* name, mode_t mode, fuse_file_info* file) noexcept {
  guarded(request, "create", [&] {
    const auto created =
        files_of(request).create(new_node(request, parent, name, mode), opens_for_writing(file->flags));
    if (!created.ok()) {
      reply_error(request, "create", parent, created.error(), errno_of(created.error()));
      return;
    }
    file->fh = created->handle;
    file->keep_cache = 1;
    const fuse_entry_param entry = to_entry(created->attributes);
    fuse_reply_create(request, &entry, file);
  });
}

void on_open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) noexcept {
  guarded(request, "open", [&] {
    const auto opened = files_of(request).open(inode, opens_for_writing(file->flags));
    if (!opened.ok()) {
      reply_error(request, "open", inode, opened.error(), errno_of(opened.error()));
      return;
    }
    file->fh = opened->handle;
    file->direct_io = opened->bypass_page_cache ? 1 : 0;
    file->keep_cache = opened->bypass_page_cache ? 0 : 1;  // one inode = one content
    fuse_reply_open(request, file);
  });
}

void on_read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info* file) noexcept {
  guarded(request, "read", [&] {
    files_of(request).read(file->fh, {static_cast<std::uint64_t>(offset), size},
                           [request, inode](Result<base::Bytes> bytes) {
                             if (!bytes.ok()) {
                               reply_error(request, "read", inode, bytes.error(), read_errno_of(bytes.error()));
                               return;
                             }
                             fuse_reply_buf(request, reinterpret_cast<const char*>(bytes->data()), bytes->size());
                           });
  });
}

void on_write(fuse_req_t request, fuse_ino_t inode, const char* data, std::size_t size, off_t offset,
              fuse_file_info* file) noexcept {
  guarded(request, "write", [&] {
    files_of(request).write(file->fh, static_cast<std::uint64_t>(offset),
                            base::as_bytes(std::string_view(data, size)), [request, inode, size](Result<void> done) {
                              if (!done.ok()) {
                                reply_error(request, "write", inode, done.error(), errno_of(done.error()));
                                return;
                              }
                              fuse_reply_write(request, size);
                            });
  });
}

void on_fallocate(fuse_req_t request, fuse_ino_t inode, int mode, off_t offset, off_t length,
                  fuse_file_info* file) noexcept {
  guarded(request, "fallocate", [&] {
    files_of(request).allocate(
        file->fh, mode, {static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length)},
        [request, inode](Result<void> done) { reply_done(request, "fallocate", inode, done); });
  });
}

void on_flush(fuse_req_t request, fuse_ino_t inode, fuse_file_info* file) noexcept {
  guarded(request, "flush", [&] {
    files_of(request).flush(file->fh, [request, inode](Result<void> done) { reply_done(request, "flush", inode, done); });
  });
}

void on_release(fuse_req_t request, fuse_ino_t /*inode*/, fuse_file_info* file) noexcept {
  guarded(request, "release", [&] {
    files_of(request).release(file->fh);
    fuse_reply_err(request, 0);
  });
}

void on_fsync(fuse_req_t request, fuse_ino_t inode, int /*datasync*/, fuse_file_info* file) noexcept {
  guarded(request, "fsync", [&] {
    files_of(request).sync(file->fh, [request, inode](Result<void> done) { reply_done(request, "fsync", inode, done); });
  });
}

// --- the rest ---

void on_statfs(fuse_req_t request, fuse_ino_t inode) noexcept {
  guarded(request, "statfs", [&] {
    const auto space = files_of(request).space();
    if (!space.ok()) {
      reply_error(request, "statfs", inode, space.error(), errno_of(space.error()));
      return;
    }
    struct statvfs status {};
    status.f_bsize = request_bytes_max;
    status.f_frsize = space->block_bytes;
    status.f_blocks = space->blocks;
    status.f_bfree = status.f_bavail = space->blocks_free;
    status.f_files = space->files;
    status.f_ffree = status.f_favail = space->files_free;
    status.f_namemax = 255;
    fuse_reply_statfs(request, &status);
  });
}

/// Sends `value` the way getxattr and listxattr want it: the size alone when none is offered.
void reply_sized(fuse_req_t request, std::string_view value, std::size_t size) {
  if (size == 0) {
    fuse_reply_xattr(request, value.size());
  } else if (size < value.size()) {
    fuse_reply_err(request, ERANGE);
  } else {
    fuse_reply_buf(request, value.data(), value.size());
  }
}

void on_getxattr(fuse_req_t request, fuse_ino_t inode, const char* name, std::size_t size) noexcept {
  guarded(request, "getxattr", [&] {
    const std::string_view wanted = name;
    if (!wanted.starts_with("user.hfdeltafs.")) {
      fuse_reply_err(request, wanted.starts_with("user.") || wanted.starts_with("system.") ? EOPNOTSUPP : ENODATA);
      return;
    }
    const auto value = files_of(request).attribute(inode, std::string(wanted));
    if (value.ok()) {
      reply_sized(request, *value, size);
    } else {
      fuse_reply_err(request, value.error().code == ErrorCode::not_found ? ENODATA : errno_of(value.error()));
    }
  });
}

void on_listxattr(fuse_req_t request, fuse_ino_t inode, std::size_t size) noexcept {
  guarded(request, "listxattr", [&] {
    std::string names;
    for (const std::string& name : files_of(request).attribute_names(inode)) {
      names += name;
      names += '\0';
    }
    reply_sized(request, names, size);
  });
}

void on_setxattr(fuse_req_t request, fuse_ino_t /*inode*/, const char* /*name*/, const char* /*value*/,
                 std::size_t /*size*/, int /*flags*/) noexcept {
  fuse_reply_err(request, EOPNOTSUPP);
}

void on_removexattr(fuse_req_t request, fuse_ino_t /*inode*/, const char* /*name*/) noexcept {
  fuse_reply_err(request, EOPNOTSUPP);
}

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops table{};
  table.init = on_init;
  table.lookup = on_lookup;
  table.forget = on_forget;
  table.forget_multi = on_forget_multi;
  table.getattr = on_getattr;
  table.setattr = on_setattr;
  table.readlink = on_readlink;
  table.mknod = on_mknod;
  table.mkdir = on_mkdir;
  table.symlink = on_symlink;
  table.unlink = on_unlink;
  table.rmdir = on_rmdir;
  table.link = on_link;
  table.rename = on_rename;
  table.opendir = on_opendir;
  table.readdir = on_readdir;
  table.releasedir = on_releasedir;
  table.fsyncdir = on_fsyncdir;
  table.create = on_create;
  table.open = on_open;
  table.read = on_read;
  table.write = on_write;
  table.fallocate = on_fallocate;
  table.flush = on_flush;
  table.release = on_release;
  table.fsync = on_fsync;
  table.statfs = on_statfs;
  table.getxattr = on_getxattr;
  table.listxattr = on_listxattr;
  table.setxattr = on_setxattr;
  table.removexattr = on_removexattr;
  // Left out on purpose, so that the kernel does it: flock and fcntl locks (local to this mount), lseek for
  // holes, copy_file_range (plain reads and writes), access (default_permissions).
  return table;
}

}  // namespace

const fuse_lowlevel_ops& operations() {
  static const fuse_lowlevel_ops table = make_operations();
  return table;
}

}  // namespace hfd::fuse
