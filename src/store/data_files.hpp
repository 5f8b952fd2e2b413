// SPDX-License-Identifier: Apache-2.0
// The sparse data files of the cache, one an object: <folder>/data/<first two hex>/<64 hex>, chunk
// i at offset i * chunk_bytes. Keeps a bounded number of them open. Knows nothing of what is valid
// in them: that is the index. Used by chunk_store.cpp and chunk_room.cpp only. Thread-safe; changes
// of files happen under the folder's lock only.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.hpp"
#include "base/mutex.hpp"
#include "store/chunk_store.hpp"

namespace hfd::store {

struct OwnerHash {
  std::size_t operator()(const ChunkOwner& owner) const noexcept {
    std::size_t value = 0;  // a sha256 is uniform already
    std::memcpy(&value, owner.data(), sizeof value);
    return value;
  }
};

/// st_blocks in bytes, as du counts; 0 when there is no such file.
std::uint64_t allocated_bytes(const std::string& path);

class DataFiles {
 public:
  using SharedFd = std::shared_ptr<const base::Fd>;

  DataFiles(std::string folder, bool may_punch);

  std::string path(const ChunkOwner& owner) const;
  Result<SharedFd> open_to_read(const ChunkOwner& owner);
  /// Makes the file when needed; never one that another process has unlinked.
  Result<SharedFd> open_to_write(const ChunkOwner& owner);
  /// Writes a chunk at its place. Blocks are allocated first, so that a full disk shows as an error
  /// here and the size on disk is final afterwards.
  Result<void> write(const ChunkKey& key, base::ByteView bytes);
  /// Gives the blocks of a chunk back; `unsupported` when the file system cannot. No file is fine.
  Result<void> punch(const ChunkKey& key);
  /// Removes the file, and its folder when that is empty.
  void remove(const ChunkOwner& owner);
  /// Closes the kept descriptor: it may be of a file that was removed and made anew.
  void forget(const ChunkOwner& owner);
  /// Owners of all files there; files with other names are removed.
  Result<std::vector<ChunkOwner>> list();

 private:
  struct Kept {
    SharedFd fd;
    std::uint64_t last_use = 0;
  };
  SharedFd find(const ChunkOwner& owner);
  SharedFd keep(const ChunkOwner& owner, base::Fd fd);

  const std::string folder_;
  const bool may_punch_;
  const std::size_t open_max_;
  base::Mutex mutex_;
  std::unordered_map<ChunkOwner, Kept, OwnerHash> kept_ HFD_GUARDED_BY(mutex_);
  std::uint64_t clock_ HFD_GUARDED_BY(mutex_) = 0;
};

}  // namespace hfd::store
