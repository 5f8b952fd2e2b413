// SPDX-License-Identifier: Apache-2.0
// The rows of the cache index: which chunks of which objects are on disk, and which object was
// used when. Used by chunk_store.cpp and chunk_room.cpp only. Values are little endian.
//
// chunks   owner (32), chunk number (8, big endian)  -> 4 bytes, 8 generation, 16 xxh3-128
// objects  owner (32)                                -> 8 allocated bytes, 8 last use
// by_use   last use (8, big endian), owner (32)      -> nothing; oldest first
// pending  owner (32), chunk number (8, big endian)  -> nothing; place on disk to be given back
// meta     "state"                                   -> IndexState
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "store/chunk_store.hpp"
#include "store/tables.hpp"

namespace hfd::store {

std::vector<std::string> chunk_table_names();

struct ChunkRow {
  std::uint32_t bytes = 0;
  std::uint64_t generation = 0;  ///< another for each write, in the whole folder
  base::Xxh128 hash{};
};

struct ObjectRow {
  std::uint64_t allocated_bytes = 0;  ///< of its data file
  std::uint64_t last_use = 0;         ///< microseconds since 1970
};

struct IndexState {
  std::uint64_t allocated_bytes = 0;  ///< sum over objects, with `object_overhead_bytes` each
  std::uint64_t next_generation = 1;
};

/// What an object costs beside its data file: its name may need a new block of its folder.
inline constexpr std::uint64_t object_overhead_bytes = 4096;
/// As a pending chunk number: the whole data file.
inline constexpr std::uint64_t whole_object = ~std::uint64_t{0};

Result<std::optional<ChunkRow>> find_chunk(const Transaction& transaction, const ChunkKey& key);
Result<void> put_chunk(Transaction& transaction, const ChunkKey& key, const ChunkRow& row);
/// Takes the row away and notes that its place on disk is to be given back.
Result<void> retire_chunk(Transaction& transaction, const ChunkKey& key);
Result<void> retire_object(Transaction& transaction, const ChunkOwner& owner);
/// Chunk numbers with their sizes, ascending, at most `count_max`.
Result<std::vector<std::pair<std::uint64_t, ChunkRow>>> chunks_of(const Transaction& transaction,
                                                                  const ChunkOwner& owner,
                                                                  std::size_t count_max);

Result<std::optional<ObjectRow>> find_object(const Transaction& transaction,
                                             const ChunkOwner& owner);
/// Keeps by_use and the sum right.
Result<void> put_object(Transaction& transaction, const ChunkOwner& owner, const ObjectRow& row);
Result<void> remove_object(Transaction& transaction, const ChunkOwner& owner);
/// The object that was used longest ago.
Result<std::optional<ChunkOwner>> oldest_object(const Transaction& transaction);
Result<std::vector<ChunkOwner>> all_objects(const Transaction& transaction);

Result<void> put_pending(Transaction& transaction, const ChunkKey& key);
Result<void> remove_pending(Transaction& transaction, const ChunkKey& key);
Result<std::vector<ChunkKey>> pending_places(const Transaction& transaction);

Result<IndexState> get_state(const Transaction& transaction);
Result<void> put_state(Transaction& transaction, const IndexState& state);

}  // namespace hfd::store
