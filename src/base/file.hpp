// SPDX-License-Identifier: Apache-2.0
// Files of the operating system: owned descriptors and whole reads and writes, with errors as
// values. The only place below src/fuse where errno is looked at. Knows no domain words.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "hfdeltafs/types.hpp"

namespace hfd::base {

/// An Error for errno `number`: ENOENT not_found, EACCES/EPERM permission, ENOSPC/EDQUOT no_space,
/// EROFS read_only, EEXIST already_exists, else io. `doing` is "cannot open" and the like.
Error os_error(int number, std::string_view doing, std::string_view object);

/// An owned file descriptor, closed on destruction. Move-only.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : number_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = other.release();
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return number_; }
  bool valid() const { return number_ >= 0; }
  int release() {
    const int number = number_;
    number_ = -1;
    return number;
  }
  void reset();

 private:
  int number_ = -1;
};

/// open(2) with O_CLOEXEC added. Paths are byte strings.
Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0600);
/// Size in bytes by fstat.
Result<std::uint64_t> file_bytes(const Fd& fd, std::string_view name);
/// Reads exactly out.size() bytes at `offset`; a file that ends before is `corrupt` ("shorter than expected").
Result<void> read_exactly(const Fd& fd, std::uint64_t offset, ByteSpan out, std::string_view name);
/// Reads up to out.size() bytes; less only at the end of the file.
Result<std::size_t> read_up_to(const Fd& fd, std::uint64_t offset, ByteSpan out, std::string_view name);
Result<void> write_exactly(const Fd& fd, std::uint64_t offset, ByteView bytes, std::string_view name);
/// Whole small file; larger than `bytes_max` is an error before anything is allocated.
Result<Bytes> read_file(const std::string& path, std::uint64_t bytes_max);
/// Replaces a file so that after a crash either the old or the new content is there:
/// temporary file in the same folder, fdatasync, rename, fsync of the folder.
Result<void> replace_file(const std::string& path, ByteView bytes, unsigned mode = 0644);
/// Like replace_file, but fails with already_exists when `path` exists (link(2) is the atomic step).
Result<void> create_file_exclusively(const std::string& path, ByteView bytes, unsigned mode = 0644);
/// mkdir -p.
Result<void> make_folders(const std::string& path, unsigned mode = 0755);
/// unlink(2); a missing file is fine.
Result<void> remove_file(const std::string& path);
/// fsync of a folder, so that names made or removed in it survive power loss.
Result<void> sync_folder(const std::string& path);
/// Names in a folder without "." and "..", unsorted.
Result<std::vector<std::string>> list_folder(const std::string& path);

/// Something with a size that can be read at any offset: the shape in which file bytes reach the
/// pure layers. Implementations are safe to call from several threads at once.
class ReadableBytes {
 public:
  ReadableBytes() = default;
  virtual ~ReadableBytes() = default;
  ReadableBytes(const ReadableBytes&) = delete;
  ReadableBytes& operator=(const ReadableBytes&) = delete;
  virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`. Precondition: the range lies within size().
  virtual Result<void> read_at(std::uint64_t offset, ByteSpan out) = 0;
};

/// A file on disk as ReadableBytes; its size is taken at open.
class FileBytes final : public ReadableBytes {
 public:
  static Result<std::unique_ptr<FileBytes>> open(const std::string& path);
  FileBytes(Fd fd, std::uint64_t bytes, std::string name);
  std::uint64_t size() const override { return bytes_; }
  Result<void> read_at(std::uint64_t offset, ByteSpan out) override;

 private:
  Fd fd_;
  std::uint64_t bytes_;
  std::string name_;
};

/// Bytes in memory as ReadableBytes. Borrows them.
class MemoryBytes final : public ReadableBytes {
 public:
  explicit MemoryBytes(ByteView bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read_at(std::uint64_t offset, ByteSpan out) override;

 private:
  ByteView bytes_;
};

/// Where a stream of bytes goes, in order.
using ByteSink = std::function<Result<void>(ByteView)>;

}  // namespace hfd::base
