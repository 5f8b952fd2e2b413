// SPDX-License-Identifier: Apache-2.0
// The local cache of remote bytes: chunks of objects (and of upstream files), each verified before
// it is served. Bytes stand in one sparse data file an object; what is there stands in an LMDB
// index. Several daemons may share one cache folder. Holds nothing that cannot be fetched again:
// losing it costs time only. The cap is enforced BEFORE bytes are written: room is made first, by
// punching out the chunks of the object that was used longest ago. Knows no domain words.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "hfdeltafs/types.hpp"

#include "base/bytes.hpp"
#include "base/file.hpp"

namespace hfd::store {

/// Unit of fetching and caching, in bytes. One block: a cold random read moves little; sequential
/// readers ask for runs of chunks, which travel as one request.
inline constexpr std::uint64_t chunk_bytes = 256U << 10U;

/// Names an object in the cache: a sha256 of anything (stored object, upstream content).
using ChunkOwner = std::array<std::byte, 32>;

struct ChunkKey {
  ChunkOwner owner{};
  std::uint64_t index = 0;  ///< chunk number in the object
};

struct CacheOptions {
  std::string folder;
  std::uint64_t bytes_max =
      10ULL << 30U;       ///< cap on allocated blocks of the whole folder, index included
  bool may_punch = true;  ///< for tests: false acts like a file system without holes
};

struct CacheCounters {
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> misses{0};
  std::atomic<std::uint64_t> bad{0};  ///< chunks on disk that failed their hash; dropped
  std::atomic<std::uint64_t> evicted{0};
  std::atomic<std::uint64_t> refused{
      0};  ///< not stored: no room on disk or under the cap, or the disk failed
};

class ChunkStore {
 public:
  /// Makes or opens the folder (mode 0700). A damaged index is thrown away and started anew, unless
  /// another process is using it (`corrupt` then). After power loss the cache starts anew too.
  static Result<std::unique_ptr<ChunkStore>> open(const CacheOptions& options);
  virtual ~ChunkStore() = default;

  /// Reads `range` of one chunk (offsets within the chunk) into `out`; false when it is not there.
  /// The whole chunk is read and its xxh3-128 checked the first time a process sees it and whenever
  /// it was written by another process; a bad one is dropped, counted, and reported as not there.
  /// Local disk only, never the network: callable from FUSE threads.
  virtual Result<bool> read(const ChunkKey& key, ByteRange range, base::ByteSpan out) = 0;
  /// True when read() would probably find it; cheap.
  virtual bool contains(const ChunkKey& key) = 0;
  /// Stores a chunk (at most chunk_bytes; shorter only at the end of an object). Best effort: a
  /// full disk or cap is counted, not an error. Bytes must have been verified by the caller as far
  /// as it can.
  virtual Result<void> write(const ChunkKey& key, base::ByteView bytes) = 0;
  /// Forgets one chunk or a whole object (bytes turned out wrong).
  virtual void drop(const ChunkKey& key) = 0;
  virtual void drop_object(const ChunkOwner& owner) = 0;

  /// Allocated bytes of the folder as the cap counts them.
  virtual std::uint64_t bytes_used() const = 0;
  virtual std::uint64_t bytes_max() const = 0;
  virtual const std::string& folder() const = 0;
  virtual const CacheCounters& counters() const = 0;
};

}  // namespace hfd::store
