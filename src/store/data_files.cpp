// SPDX-License-Identifier: Apache-2.0
#include "store/data_files.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hfd::store {
namespace {

constexpr std::size_t open_most = 256;
constexpr std::size_t open_least = 8;
constexpr std::uint64_t stat_block_bytes =
    512;  // what st_blocks counts, whatever the file system's own block

/// A quarter of what the process may have open, so that a low `ulimit -n` still leaves room for the
/// mount.
std::size_t open_files_max() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return open_least;
  }
  return std::clamp<std::size_t>(limit.rlim_cur / 4, open_least, open_most);
}

std::string hex(const ChunkOwner& owner) { return ContentHash{owner}.hex(); }

}  // namespace

std::uint64_t allocated_bytes(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    return 0;
  }
  return static_cast<std::uint64_t>(status.st_blocks) * stat_block_bytes;
}

DataFiles::DataFiles(std::string folder, bool may_punch)
    : folder_(std::move(folder)), may_punch_(may_punch), open_max_(open_files_max()) {}

std::string DataFiles::path(const ChunkOwner& owner) const {
  const std::string name = hex(owner);
  return folder_ + "/" + name.substr(0, 2) + "/" + name;
}

DataFiles::SharedFd DataFiles::find(const ChunkOwner& owner) {
  base::Lock lock(mutex_);
  const auto found = kept_.find(owner);
  if (found == kept_.end()) {
    return nullptr;
  }
  found->second.last_use = ++clock_;
  return found->second.fd;
}

DataFiles::SharedFd DataFiles::keep(const ChunkOwner& owner, base::Fd fd) {
  auto shared = std::make_shared<const base::Fd>(std::move(fd));
  SharedFd closing;  // closed after the lock is gone
  base::Lock lock(mutex_);
  if (kept_.size() >= open_max_) {
    const auto oldest = std::min_element(
        kept_.begin(), kept_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    closing = std::move(oldest->second.fd);
    kept_.erase(oldest);
  }
  kept_[owner] = {shared, ++clock_};
  return shared;
}

void DataFiles::forget(const ChunkOwner& owner) {
  SharedFd closing;
  base::Lock lock(mutex_);
  if (const auto found = kept_.find(owner); found != kept_.end()) {
    closing = std::move(found->second.fd);
    kept_.erase(found);
  }
}

Result<DataFiles::SharedFd> DataFiles::open_to_read(const ChunkOwner& owner) {
  if (auto kept = find(owner)) {
    return kept;
  }
  HFD_TRY(base::Fd fd, base::open_file(path(owner), O_RDWR));
  return keep(owner, std::move(fd));
}

Result<DataFiles::SharedFd> DataFiles::open_to_write(const ChunkOwner& owner) {
  if (auto kept = find(owner)) {
    struct stat status {};
    if (::fstat(kept->get(), &status) == 0 && status.st_nlink > 0) {
      return kept;
    }
    forget(owner);
  }
  const std::string name = path(owner);
  HFD_TRY_VOID(base::make_folders(name.substr(0, name.rfind('/')), 0700));
  HFD_TRY(base::Fd fd, base::open_file(name, O_RDWR | O_CREAT));
  return keep(owner, std::move(fd));
}

Result<void> DataFiles::write(const ChunkKey& key, base::ByteView bytes) {
  HFD_TRY(const SharedFd fd, open_to_write(key.owner));
  const std::uint64_t at = key.index * chunk_bytes;
  if (::fallocate(fd->get(), 0, static_cast<off_t>(at), static_cast<off_t>(bytes.size())) != 0 &&
      errno != EOPNOTSUPP) {
    return base::os_error(errno, "cannot allocate", path(key.owner));
  }
  return base::write_exactly(*fd, at, bytes, path(key.owner));
}

Result<void> DataFiles::punch(const ChunkKey& key) {
  if (!may_punch_) {
    return Error{ErrorCode::unsupported, "no holes here", folder_};
  }
  const auto fd = base::open_file(path(key.owner), O_RDWR);
  if (!fd.ok()) {
    return fd.error().code == ErrorCode::not_found ? Result<void>() : fd.error();
  }
  if (::fallocate(fd->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(key.index * chunk_bytes),
                  static_cast<off_t>(chunk_bytes)) != 0) {
    const int number = errno;
    Error error = base::os_error(number, "cannot make a hole", path(key.owner));
    if (number == EOPNOTSUPP || number == ENOSYS || number == EINVAL) {
      error.code = ErrorCode::unsupported;
    }
    return error;
  }
  return {};
}

void DataFiles::remove(const ChunkOwner& owner) {
  forget(owner);
  const std::string name = path(owner);
  ::unlink(name.c_str());
  ::rmdir(name.substr(0, name.rfind('/')).c_str());  // fails when others are in it
}

Result<std::vector<ChunkOwner>> DataFiles::list() {
  std::vector<ChunkOwner> owners;
  HFD_TRY(const auto folders, base::list_folder(folder_));
  for (const std::string& folder : folders) {
    const auto names = base::list_folder(folder_ + "/" + folder);
    if (!names.ok()) {
      ::unlink((folder_ + "/" + folder).c_str());
      continue;
    }
    for (const std::string& name : *names) {
      const auto id = ContentHash::from_hex(name);
      if (id.ok() && hex(id->bytes) == name && name.substr(0, 2) == folder) {
        owners.push_back(id->bytes);
      } else {
        ::unlink((folder_ + "/" + folder + "/" + name).c_str());
      }
    }
    ::rmdir((folder_ + "/" + folder).c_str());
  }
  return owners;
}

}  // namespace hfd::store
