// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <system_error>

namespace hfd::base {
namespace {

ErrorCode code_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR: return ErrorCode::not_found;
    case EACCES:
    case EPERM: return ErrorCode::permission;
    case ENOSPC:
    case EDQUOT: return ErrorCode::no_space;
    case EROFS: return ErrorCode::read_only;
    case EEXIST: return ErrorCode::already_exists;
    default: return ErrorCode::io;
  }
}

/// Folder part of a path, "." when there is none.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
}

/// Writes `bytes` to a new synced temporary file beside `path` and returns its name.
Result<std::string> write_temporary(const std::string& path, ByteView bytes, unsigned mode) {
  std::string temporary = temporary_name(path);
  HFD_TRY(const Fd fd, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
  auto written = write_exactly(fd, 0, bytes, temporary);
  if (written.ok() && ::fdatasync(fd.get()) != 0) {
    written = os_error(errno, "cannot sync", temporary);
  }
  if (!written.ok()) {
    ::unlink(temporary.c_str());
    return std::move(written).error();
  }
  return temporary;
}

}  // namespace

Error os_error(int number, std::string_view doing, std::string_view object) {
  Error error{code_of(number), std::string(doing) + ": " + std::generic_category().message(number)};
  error.object = object;
  error.os_errno = number;
  return error;
}

void Fd::reset() {
  if (number_ >= 0) {
    ::close(number_);
    number_ = -1;
  }
}

Result<Fd> open_file(const std::string& path, int flags, unsigned mode) {
  const int number = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (number < 0) {
    return os_error(errno, "cannot open", path);
  }
  return Fd(number);
}

Result<std::uint64_t> file_bytes(const Fd& fd, std::string_view name) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return os_error(errno, "cannot stat", name);
  }
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::size_t> read_up_to(const Fd& fd, std::uint64_t offset, ByteSpan out, std::string_view name) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return os_error(errno, "cannot read", name);
    }
    if (n == 0) {
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Result<void> read_exactly(const Fd& fd, std::uint64_t offset, ByteSpan out, std::string_view name) {
  HFD_TRY(const std::size_t done, read_up_to(fd, offset, out, name));
  if (done != out.size()) {
    return Error{ErrorCode::corrupt, "the file is shorter than expected", std::string(name)};
  }
  return {};
}

Result<void> write_exactly(const Fd& fd, std::uint64_t offset, ByteView bytes, std::string_view name) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return os_error(errno, "cannot write", name);
    }
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Result<Bytes> read_file(const std::string& path, std::uint64_t bytes_max) {
  HFD_TRY(const Fd fd, open_file(path, O_RDONLY));
  HFD_TRY(const std::uint64_t bytes, file_bytes(fd, path));
  if (bytes > bytes_max) {
    return Error{ErrorCode::corrupt, "the file is larger than such a file may be", path};
  }
  Bytes out(static_cast<std::size_t>(bytes));
  HFD_TRY_VOID(read_exactly(fd, 0, out, path));
  return out;
}

Result<void> replace_file(const std::string& path, ByteView bytes, unsigned mode) {
  HFD_TRY(const std::string temporary, write_temporary(path, bytes, mode));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary.c_str());
    return os_error(number, "cannot rename into place", path);
  }
  return sync_folder(folder_of(path));
}

Result<void> create_file_exclusively(const std::string& path, ByteView bytes, unsigned mode) {
  HFD_TRY(const std::string temporary, write_temporary(path, bytes, mode));
  const int linked = ::link(temporary.c_str(), path.c_str());
  const int number = errno;
  ::unlink(temporary.c_str());
  if (linked != 0) {
    return os_error(number, "cannot create", path);
  }
  return sync_folder(folder_of(path));
}

Result<void> make_folders(const std::string& path, unsigned mode) {
  if (path.empty()) {
    return {};
  }
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
      return os_error(ENOTDIR, "cannot make folder", path);
    }
    return {};
  }
  if (errno != ENOENT || folder_of(path) == path) {
    return os_error(errno, "cannot make folder", path);
  }
  HFD_TRY_VOID(make_folders(folder_of(path), mode));
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST) {
    return os_error(errno, "cannot make folder", path);
  }
  return {};
}

Result<void> remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return os_error(errno, "cannot remove", path);
  }
  return {};
}

Result<void> sync_folder(const std::string& path) {
  HFD_TRY(const Fd fd, open_file(path, O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) {
    return os_error(errno, "cannot sync folder", path);
  }
  return {};
}

Result<std::vector<std::string>> list_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) {
    return os_error(errno, "cannot list", path);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe): one DIR a thread
    const std::string_view name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
    errno = 0;
  }
  if (errno != 0) {
    return os_error(errno, "cannot list", path);
  }
  return names;
}

FileBytes::FileBytes(Fd fd, std::uint64_t bytes, std::string name)
    : fd_(std::move(fd)), bytes_(bytes), name_(std::move(name)) {}

Result<std::unique_ptr<FileBytes>> FileBytes::open(const std::string& path) {
  HFD_TRY(Fd fd, open_file(path, O_RDONLY));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return os_error(errno, "cannot stat", path);
  }
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::invalid_argument, "not a regular file", path};
  }
  return std::make_unique<FileBytes>(std::move(fd), static_cast<std::uint64_t>(status.st_size), path);
}

Result<void> FileBytes::read_at(std::uint64_t offset, ByteSpan out) { return read_exactly(fd_, offset, out, name_); }

Result<void> MemoryBytes::read_at(std::uint64_t offset, ByteSpan out) {
  if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
    return Error{ErrorCode::corrupt, "read past the end of bytes in memory"};
  }
  if (!out.empty()) {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }
  return {};
}

}  // namespace hfd::base
