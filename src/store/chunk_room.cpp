// SPDX-License-Identifier: Apache-2.0
#include "store/chunk_room.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace hfd::store {
namespace {

/// What LMDB's file may grow by in the transactions of one write: about 16 pages each, and it never
/// shrinks.
constexpr std::uint64_t index_growth_bytes = 256U << 10U;
/// Rows of one eviction; keeps its transaction, and so the growth of the index, small.
constexpr std::size_t evicted_at_once_max = 128;
/// Evicting a little more than needed saves transactions later.
constexpr std::uint64_t eviction_share = 64;  // of the cap
constexpr std::uint64_t eviction_bytes_max = 16U << 20U;

}  // namespace

Result<std::uint64_t> ChunkRoom::bytes_used() const {
  HFD_TRY(const auto reading, tables_.begin_read());
  HFD_TRY(const IndexState state, get_state(reading));
  std::uint64_t bytes = state.allocated_bytes;
  for (const char* part :
       {"", "/lock", "/data", "/index", "/index/data.mdb", "/index/lock.mdb", "/index/state"}) {
    bytes += allocated_bytes(options_.folder + part);
  }
  return bytes;
}

Result<bool> ChunkRoom::make(std::uint64_t bytes) {
  const std::uint64_t needed = bytes + object_overhead_bytes + index_growth_bytes;
  if (needed > options_.bytes_max) {
    return false;
  }
  while (true) {
    HFD_TRY(const std::uint64_t used, bytes_used());
    if (used <= options_.bytes_max - needed) {
      return true;
    }
    const std::uint64_t spare = std::min(options_.bytes_max / eviction_share, eviction_bytes_max);
    HFD_TRY(const bool evicted, evict(std::max(used - (options_.bytes_max - needed), spare)));
    if (!evicted) {
      return false;
    }
  }
}

/// Evicts chunks of the object that was used longest ago; false when there is nothing left.
Result<bool> ChunkRoom::evict(std::uint64_t bytes_wanted) {
  std::uint64_t count = 0;
  {
    HFD_TRY(auto writing, tables_.begin_write());
    HFD_TRY(const auto owner, oldest_object(writing));
    if (!owner) {
      return false;
    }
    HFD_TRY(const auto chunks, chunks_of(writing, *owner, evicted_at_once_max));
    std::uint64_t bytes = 0;
    for (const auto& [index, row] : chunks) {
      if (bytes >= bytes_wanted) {
        break;
      }
      HFD_TRY_VOID(retire_chunk(writing, {*owner, index}));
      bytes += row.bytes;
      ++count;
    }
    if (chunks.empty()) {
      HFD_TRY_VOID(
          put_pending(writing, {*owner, whole_object}));  // an object without chunks: only its file
    }
    HFD_TRY_VOID(writing.commit());
  }
  counters_.evicted += count;
  HFD_TRY_VOID(finish_pending());
  return true;
}

Result<void> ChunkRoom::finish_pending() {
  std::vector<ChunkKey> places;
  {
    HFD_TRY(const auto reading, tables_.begin_read());
    HFD_TRY(places, pending_places(reading));
  }
  std::map<ChunkOwner, std::vector<ChunkKey>> by_owner;
  for (const ChunkKey& place : places) {
    by_owner[place.owner].push_back(place);
  }
  for (const auto& [owner, of_owner] : by_owner) {
    HFD_TRY_VOID(give_back(owner, of_owner));
  }
  return {};
}

Result<bool> ChunkRoom::is_empty(const ChunkOwner& owner) const {
  HFD_TRY(const auto reading, tables_.begin_read());
  HFD_TRY(const auto left, chunks_of(reading, owner, 1));
  return left.empty();
}

Result<void> ChunkRoom::give_back(const ChunkOwner& owner, const std::vector<ChunkKey>& places) {
  bool whole = std::any_of(places.begin(), places.end(),
                           [](const ChunkKey& p) { return p.index == whole_object; });
  for (auto place = places.begin(); place != places.end() && !whole; ++place) {
    const auto punched = files_.punch(*place);
    if (!punched.ok() && punched.error().code != ErrorCode::unsupported) {
      return punched;
    }
    whole = !punched.ok();
  }
  if (whole) {
    // Also where the file system makes no holes: the object goes as a whole, its rows before its
    // file.
    HFD_TRY(auto writing, tables_.begin_write());
    HFD_TRY_VOID(retire_object(writing, owner));
    HFD_TRY_VOID(writing.commit());
    files_.remove(owner);
  } else {
    HFD_TRY(const bool empty, is_empty(owner));
    if (empty) {
      files_.remove(owner);
    }
  }
  return settle_object(owner, places);
}

/// The row of an object says again what its file takes; the places are no longer pending.
Result<void> ChunkRoom::settle_object(const ChunkOwner& owner,
                                      const std::vector<ChunkKey>& places) {
  HFD_TRY(auto writing, tables_.begin_write());
  for (const ChunkKey& place : places) {
    HFD_TRY_VOID(remove_pending(writing, place));
  }
  HFD_TRY_VOID(remove_pending(writing, {owner, whole_object}));
  HFD_TRY(const auto left, chunks_of(writing, owner, 1));
  if (left.empty()) {
    HFD_TRY_VOID(remove_object(writing, owner));
  } else {
    HFD_TRY(const auto row, find_object(writing, owner));
    HFD_TRY_VOID(
        put_object(writing, owner, {allocated_bytes(files_.path(owner)), row ? row->last_use : 0}));
  }
  return writing.commit();
}

Result<void> ChunkRoom::reconcile() {
  HFD_TRY_VOID(finish_pending());
  HFD_TRY(const auto on_disk, files_.list());
  const std::set<ChunkOwner> files(on_disk.begin(), on_disk.end());
  HFD_TRY(auto writing, tables_.begin_write());
  HFD_TRY(const auto owners, all_objects(writing));
  const std::set<ChunkOwner> known(owners.begin(), owners.end());
  for (const ChunkOwner& owner : owners) {
    HFD_TRY(const auto row, find_object(writing, owner));
    if (files.count(owner) == 0) {
      HFD_TRY_VOID(retire_object(writing, owner));
    } else if (const std::uint64_t bytes = allocated_bytes(files_.path(owner));
               row->allocated_bytes != bytes) {
      HFD_TRY_VOID(put_object(writing, owner, {bytes, row->last_use}));
    }
  }
  HFD_TRY_VOID(writing.commit());
  for (const ChunkOwner& owner : files) {
    if (known.count(owner) == 0) {
      files_.remove(owner);
    }
  }
  return finish_pending();
}

}  // namespace hfd::store
