// SPDX-License-Identifier: Apache-2.0
#include "api/folder_writer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.hpp"

namespace hfd::api {
namespace {

constexpr std::size_t read_bytes = 1U << 20U;

std::string temporary_name() {
  static std::atomic<unsigned> counter{0};
  return ".hfd-pull-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1)) +
         ".tmp";
}

std::array<timespec, 2> times_of(base::UnixNanoseconds mtime) {
  constexpr base::UnixNanoseconds second = 1'000'000'000;
  timespec time{};
  time.tv_sec = static_cast<time_t>(mtime / second - (mtime % second < 0 ? 1 : 0));
  time.tv_nsec = static_cast<long>((mtime % second + second) % second);
  return {time, time};
}

/// What open(2) would give a new file: 0666 or 0777 without the user's umask.
unsigned mode_of(const lineage::FileEntry& file) {
  static const unsigned mask = [] {
    const mode_t old = ::umask(022);
    ::umask(old);
    return old;
  }();
  return (file.executable ? 0777U : 0666U) & ~mask;
}

Result<void> set_attributes(const base::Fd& fd, const lineage::FileEntry& file,
                            const std::string& shown) {
  const auto times = times_of(file.mtime);
  if (::fchmod(fd.get(), mode_of(file)) != 0 || ::futimens(fd.get(), times.data()) != 0) {
    return base::os_error(errno, "cannot set mode and time", shown);
  }
  return {};
}

Result<ContentHash> hash_of(const base::Fd& fd, std::uint64_t bytes, const std::string& shown) {
  base::Sha256 sha256;
  base::Bytes buffer(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, read_bytes)));
  for (std::uint64_t at = 0; at < bytes;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - at, buffer.size()));
    const base::ByteSpan piece = base::ByteSpan(buffer).first(count);
    HFD_TRY_VOID(base::read_exactly(fd, at, piece, shown));
    sha256.update(piece);
    at += count;
  }
  return ContentHash{sha256.finish()};
}

/// Writes what `fill` gives to `fd` and compares it with what the entry says.
Result<void> fill_checked(const base::Fd& fd, const lineage::FileEntry& file,
                          const std::string& shown,
                          const std::function<Result<void>(const base::ByteSink&)>& fill) {
  base::Sha256 sha256;
  std::uint64_t bytes = 0;
  const base::ByteSink sink = [&](base::ByteView piece) -> Result<void> {
    sha256.update(piece);
    HFD_TRY_VOID(base::write_exactly(fd, bytes, piece, shown));
    bytes += piece.size();
    return {};
  };
  HFD_TRY_VOID(fill(sink));
  if (bytes != file.bytes || ContentHash{sha256.finish()} != file.sha256) {
    Error error{ErrorCode::corrupt, "cannot pull the file: its bytes are not what the version says",
                file.path};
    return std::move(error).with_hint(
        "hfdeltafs verify lists what is damaged; is --base the right base?");
  }
  HFD_TRY_VOID(set_attributes(fd, file, shown));
  if (::fdatasync(fd.get()) != 0) {
    return base::os_error(errno, "cannot sync", shown);
  }
  return {};
}

}  // namespace

Result<FolderWriter> FolderWriter::open(const std::string& folder) {
  HFD_TRY_VOID(base::make_folders(folder));
  HFD_TRY(base::Fd root, base::open_file(folder, O_RDONLY | O_DIRECTORY));
  return FolderWriter(folder, std::move(root));
}

Result<base::Fd> FolderWriter::enter(const base::Fd& parent, const std::string& name,
                                     const std::string& shown) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  base::Fd child(::openat(parent.get(), name.c_str(), flags));
  if (!child.valid() && errno == ENOENT) {
    ::mkdirat(parent.get(), name.c_str(), 0777);  // when somebody else was faster, openat tells
    child = base::Fd(::openat(parent.get(), name.c_str(), flags));
  }
  if (!child.valid()) {
    Error error = base::os_error(errno, "cannot write below this name", shown);
    return std::move(error).with_hint(
        "a folder is needed there: move away what stands in its place");
  }
  return child;
}

Result<base::Fd> FolderWriter::open_parent(const std::string& path, std::string& name) const {
  base::Fd at(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 0));
  if (!at.valid()) {
    return base::os_error(errno, "cannot open", folder_);
  }
  std::size_t start = 0;
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', start)) {
    HFD_TRY(at,
            enter(at, path.substr(start, slash - start), folder_ + "/" + path.substr(0, slash)));
    start = slash + 1;
  }
  name = path.substr(start);
  return at;
}

Result<bool> FolderWriter::is_right(const lineage::FileEntry& file) const {
  std::string name;
  HFD_TRY(const base::Fd parent, open_parent(file.path, name));
  const base::Fd fd(
      ::openat(parent.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) != file.bytes) {
    return false;
  }
  const std::string shown = folder_ + "/" + file.path;
  HFD_TRY(const ContentHash sha256, hash_of(fd, file.bytes, shown));
  if (sha256 != file.sha256) {
    return false;
  }
  HFD_TRY_VOID(set_attributes(fd, file, shown));
  return true;
}

Result<void> FolderWriter::write_file(
    const lineage::FileEntry& file,
    const std::function<Result<void>(const base::ByteSink&)>& fill) const {
  std::string name;
  HFD_TRY(const base::Fd parent, open_parent(file.path, name));
  const std::string shown = folder_ + "/" + file.path;
  const std::string temporary = temporary_name();
  const base::Fd fd(::openat(parent.get(), temporary.c_str(),
                             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) {
    return base::os_error(errno, "cannot create the file", shown);
  }
  auto filled = fill_checked(fd, file, shown, fill);
  if (filled.ok() && ::renameat(parent.get(), temporary.c_str(), parent.get(), name.c_str()) != 0) {
    filled = base::os_error(errno, "cannot rename into place", shown);
  }
  if (!filled.ok()) {
    ::unlinkat(parent.get(), temporary.c_str(), 0);
  }
  return filled;
}

Result<void> FolderWriter::write_symlink(const lineage::FileEntry& link) const {
  std::string name;
  HFD_TRY(const base::Fd parent, open_parent(link.path, name));
  const std::string temporary = temporary_name();
  const auto times = times_of(link.mtime);
  const bool made =
      ::symlinkat(link.symlink_target.c_str(), parent.get(), temporary.c_str()) == 0 &&
      ::utimensat(parent.get(), temporary.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0 &&
      ::renameat(parent.get(), temporary.c_str(), parent.get(), name.c_str()) == 0;
  if (!made) {
    const int number = errno;
    ::unlinkat(parent.get(), temporary.c_str(), 0);
    return base::os_error(number, "cannot make the symlink", folder_ + "/" + link.path);
  }
  return {};
}

Result<void> FolderWriter::make_folder(const lineage::FileEntry& folder) const {
  std::string name;
  HFD_TRY(const base::Fd parent, open_parent(folder.path, name));
  HFD_TRY(const base::Fd made, enter(parent, name, folder_ + "/" + folder.path));
  const auto times = times_of(folder.mtime);
  if (::futimens(made.get(), times.data()) != 0) {
    return base::os_error(errno, "cannot set the time", folder_ + "/" + folder.path);
  }
  return {};
}

}  // namespace hfd::api
