// SPDX-License-Identifier: Apache-2.0
#include "remote/folder_remote.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "remote/folder_listing.hpp"
#include "remote/folder_watch.hpp"
#include "remote/object_name.hpp"

namespace hfd::remote {
namespace {

constexpr std::size_t copy_buffer_bytes = 1U << 20U;

std::string temporary_folder(const std::string& root) {
  return root + "/" + std::string(temporary_folder_name);
}

/// Unique among all writers of a shared folder: processes, hosts, threads.
std::string temporary_name() {
  static const std::uint64_t process = [] {
    std::random_device random;
    return (std::uint64_t{random()} << 32U) | random();
  }();
  static std::atomic<std::uint64_t> counter{0};
  return std::to_string(process) + "-" + std::to_string(counter.fetch_add(1));
}

/// The nearest folder at or above `path` that exists.
std::string existing_ancestor(std::string path) {
  while (path.size() > 1 && ::access(path.c_str(), F_OK) != 0) {
    path.resize(std::max<std::size_t>(path.rfind('/'), 1));
  }
  return path;
}

Result<void> copy_to(base::ReadableBytes& content, const base::Fd& fd, const std::string& path) {
  const std::uint64_t bytes = content.size();
  base::Bytes buffer(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, copy_buffer_bytes)));
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t count =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, buffer.size()));
    const base::ByteSpan piece = base::ByteSpan(buffer).first(count);
    HFD_TRY_VOID(content.read_at(at, piece));
    HFD_TRY_VOID(base::write_exactly(fd, at, piece, path));
    at += count;
  }
  if (::fdatasync(fd.get()) != 0) {
    return base::os_error(errno, "cannot sync", path);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Remote>> open_folder(const ParsedUri& uri, bool create) {
  struct stat status {};
  if (::stat(uri.path.c_str(), &status) != 0) {
    Error error = base::os_error(errno, "cannot open the folder", uri.path);
    if (error.code != ErrorCode::not_found || !create) {
      return std::move(error).with_hint("is the path right?");
    }
  } else if (!S_ISDIR(status.st_mode)) {
    Error error{ErrorCode::invalid_argument, "cannot open the folder: it is a file", uri.path};
    return std::move(error).with_hint("name the folder that holds it");
  }
  return std::unique_ptr<Remote>(std::make_unique<FolderRemote>(uri.path, uri.canonical));
}

FolderRemote::FolderRemote(std::string root, std::string uri)
    : root_(root == "/" ? std::string() : std::move(root)), uri_(std::move(uri)) {}

Capabilities FolderRemote::capabilities() const {
  return {.put_if_absent = true,
          .watch = true,
          .writable = ::access(existing_ancestor(root_ + "/.").c_str(), W_OK) == 0};
}

std::string FolderRemote::path_of(const std::string& name) const { return root_ + "/" + name; }

Result<base::Bytes> FolderRemote::read_now(const std::string& name, ByteRange range) {
  const std::string path = path_of(name);
  HFD_TRY(const base::Fd fd,
          base::open_file(path, O_RDONLY | O_NONBLOCK));  // a FIFO must not hold the thread
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return base::os_error(errno, "cannot stat", path);
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::not_found, "cannot read: not a regular file", path};
  }
  if (!range.within(static_cast<std::uint64_t>(status.st_size))) {
    return Error{ErrorCode::corrupt, "cannot read: the object is shorter than expected", path};
  }
  base::Bytes bytes(static_cast<std::size_t>(range.size));
  HFD_TRY_VOID(base::read_exactly(fd, range.offset, bytes, path));
  counters_.bytes_in.fetch_add(range.size, std::memory_order_relaxed);
  return bytes;
}

void FolderRemote::read(const std::string& name, ByteRange range, base::Deadline deadline,
                        ReadDone done) {
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  reads_.post(
      name, deadline,
      [this, name, range]() -> Result<base::Bytes> {
        HFD_TRY_VOID(check_object_name(name));
        return read_now(name, range);
      },
      std::move(done));
}

Result<ObjectInfo> FolderRemote::head(const std::string& name) {
  HFD_TRY_VOID(check_object_name(name));
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  const std::string path = path_of(name);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return base::os_error(errno, "cannot find the object", path);
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::not_found, "cannot find the object: not a regular file", path};
  }
  return object_info(name, status);
}

Result<std::vector<ObjectInfo>> FolderRemote::list(const std::string& prefix) {
  if (!prefix.empty()) {
    HFD_TRY_VOID(check_object_name(prefix));
  }
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  return list_objects(root_, prefix);
}

Result<std::string> FolderRemote::make_parent(const std::string& name) {
  // Each folder that is new is synced into its parent: an object is durable only if its path is.
  const std::size_t slash = name.rfind('/');
  std::string parent = slash == std::string::npos ? root_ + "/" : path_of(name.substr(0, slash));
  std::vector<std::string> missing;
  for (std::string at = parent; ::access(at.c_str(), F_OK) != 0 && at.size() > 1;
       at.resize(std::max<std::size_t>(at.rfind('/'), 1))) {
    missing.push_back(at);
  }
  if (auto made = base::make_folders(parent); !made.ok()) {
    Error error = std::move(made).error();
    if (error.code == ErrorCode::not_found) {
      error.code = ErrorCode::unavailable;  // the folder is away: not the caller's wrong name
    }
    return error;
  }
  for (const std::string& folder : missing) {
    HFD_TRY_VOID(base::sync_folder(folder.substr(0, std::max<std::size_t>(folder.rfind('/'), 1))));
  }
  return parent;
}

Result<std::string> FolderRemote::write_temporary(base::ReadableBytes& content) {
  HFD_TRY_VOID(base::make_folders(temporary_folder(root_)));
  std::string path = temporary_folder(root_) + "/" + temporary_name();
  HFD_TRY(const base::Fd fd, base::open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0644));
  if (auto copied = copy_to(content, fd, path); !copied.ok()) {
    ::unlink(path.c_str());
    return std::move(copied).error();
  }
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  counters_.bytes_out.fetch_add(content.size(), std::memory_order_relaxed);
  return path;
}

Result<void> FolderRemote::put(const std::string& name, base::ReadableBytes& content) {
  HFD_TRY_VOID(check_object_name(name));
  HFD_TRY(const std::string parent, make_parent(name));
  HFD_TRY(const std::string temporary, write_temporary(content));
  const std::string path = path_of(name);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary.c_str());
    return base::os_error(number, "cannot write the object", path);
  }
  return base::sync_folder(parent);
}

Result<void> FolderRemote::put_if_absent(const std::string& name, base::ByteView content) {
  HFD_TRY_VOID(check_object_name(name));
  HFD_TRY(const std::string parent, make_parent(name));
  base::MemoryBytes bytes(content);
  HFD_TRY(const std::string temporary, write_temporary(bytes));
  const std::string path = path_of(name);
  const int linked = ::link(temporary.c_str(), path.c_str());  // the atomic step, also on NFS
  const int number = errno;
  ::unlink(temporary.c_str());
  if (linked != 0) {
    return base::os_error(number, "cannot create the object", path);
  }
  return base::sync_folder(parent);
}

std::optional<std::string> FolderRemote::local_path(const std::string& name) const {
  if (!check_object_name(name).ok()) {
    return std::nullopt;
  }
  return path_of(name);
}

Result<void> FolderRemote::remove(const std::string& name) {
  HFD_TRY_VOID(check_object_name(name));
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  return base::remove_file(path_of(name));
}

std::unique_ptr<Watch> FolderRemote::watch(const std::string& prefix,
                                           std::function<void()> changed) {
  if (!prefix.empty() && !check_object_name(prefix).ok()) {
    return nullptr;
  }
  return watch_folder(prefix.empty() ? root_ + "/" : path_of(prefix), std::move(changed));
}

}  // namespace hfd::remote
