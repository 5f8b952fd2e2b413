// SPDX-License-Identifier: Apache-2.0
// Bytes of an object on a remote, through the chunk cache: what is cached is copied at once, missing
// chunks are fetched (neighbours in one request, each chunk once however many wait for it), stored
// and handed on. Part of rebuild; knows objects and ranges, not blocks or contents.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bytes.hpp"
#include "base/mutex.hpp"
#include "rebuild/join.hpp"
#include "remote/remote.hpp"
#include "store/chunk_store.hpp"

namespace hfd::rebuild {

/// Where bytes can be had.
struct FetchSource {
  remote::Remote* remote = nullptr;
  std::string name;                  ///< object name on the remote
  std::uint64_t bytes = 0;           ///< size of the object
  store::ChunkOwner owner{};         ///< its name in the cache
};

class ChunkFetcher {
 public:
  /// `cache` may be null: then every range is fetched as it is.
  ChunkFetcher(store::ChunkStore* cache, std::chrono::milliseconds deadline);

  /// Fills `out` with `range` of the object, then runs `done`: at once when all is cached, else on a
  /// thread of the remote. `out` must stay valid until then. Precondition: out.size() == range.size.
  void read_into(const FetchSource& source, ByteRange range, base::ByteSpan out, Done done);

  /// Forgets the cached chunks of a range: its bytes turned out wrong, the next read fetches them anew.
  void drop(const FetchSource& source, ByteRange range);

 private:
  /// The longest run of missing chunks that travels as one request.
  static constexpr std::uint64_t request_bytes_max = 4U << 20U;

  struct Waiter {
    ByteRange part;      ///< within the chunk
    base::ByteSpan out;
    std::shared_ptr<Join> join;
  };
  struct KeyHash {
    std::size_t operator()(const store::ChunkKey& key) const noexcept;
  };
  struct KeyEqual {
    bool operator()(const store::ChunkKey& a, const store::ChunkKey& b) const noexcept {
      return a.index == b.index && a.owner == b.owner;
    }
  };

  /// Registers a waiter; true when the caller has to fetch the chunk.
  bool wait_for(const store::ChunkKey& key, Waiter waiter);
  void request(const FetchSource& source, std::uint64_t first_chunk, std::uint64_t chunk_count);
  void arrived(const FetchSource& source, std::uint64_t first_chunk, std::uint64_t chunk_count,
               Result<base::Bytes> bytes);
  std::vector<Waiter> take_waiters(const store::ChunkKey& key);

  store::ChunkStore* cache_;
  std::chrono::milliseconds deadline_;
  base::Mutex mutex_;
  std::unordered_map<store::ChunkKey, std::vector<Waiter>, KeyHash, KeyEqual> under_way_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::rebuild
