// SPDX-License-Identifier: Apache-2.0
// Room in the cache folder: what it takes on disk, and giving places back. Everything here happens
// under the folder's lock. Used by chunk_store.cpp only.
//
// A place on disk (a chunk's range of a data file) is given back in three steps, so that a crash
// between them loses and leaks nothing: (1) one transaction takes the chunk's row away and lists
// the place as pending, (2) the hole is punched, (3) the pending row goes. Whoever takes the
// folder's lock next first finishes what is pending. A writer lists its place as pending before it
// writes there.
#pragma once

#include <string>

#include "store/chunk_index.hpp"
#include "store/data_files.hpp"

namespace hfd::store {

class ChunkRoom {
 public:
  ChunkRoom(const CacheOptions& options, Tables& tables, DataFiles& files, CacheCounters& counters)
      : options_(options), tables_(tables), files_(files), counters_(counters) {}

  /// Allocated bytes of the whole folder. Needs no lock.
  Result<std::uint64_t> bytes_used() const;
  /// Evicts until `bytes` more (of data, beside what the index may grow by) fit under the cap;
  /// false when that cannot be.
  Result<bool> make(std::uint64_t bytes);
  /// Gives all pending places back.
  Result<void> finish_pending();
  /// After a daemon died: files and index are brought into agreement.
  Result<void> reconcile();

 private:
  Result<bool> is_empty(const ChunkOwner& owner) const;
  Result<bool> evict(std::uint64_t bytes_wanted);
  Result<void> give_back(const ChunkOwner& owner, const std::vector<ChunkKey>& places);
  Result<void> settle_object(const ChunkOwner& owner, const std::vector<ChunkKey>& places);

  const CacheOptions& options_;
  Tables& tables_;
  DataFiles& files_;
  CacheCounters& counters_;
};

}  // namespace hfd::store
