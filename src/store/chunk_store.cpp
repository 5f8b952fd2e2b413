// SPDX-License-Identifier: Apache-2.0
// Reading takes no lock but a short in-memory one: look at the row, read the bytes, look at the row
// again. A chunk's row goes before its place on disk does, and each write gives it another
// generation, so a second look at an unchanged row proves that the bytes in between were the right
// ones, whatever other threads and processes did meanwhile.
//
// Writing and evicting hold the lock of the folder (flock, plus a mutex for the threads of this
// process) across their disk I/O. This is meant: it makes "room first, then bytes" one step for all
// daemons. Readers never wait for it; a writer that does not get it in time leaves the chunk
// uncached.
#include "store/chunk_store.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "store/chunk_index.hpp"
#include "store/chunk_room.hpp"
#include "store/data_files.hpp"

namespace hfd::store {
namespace {

constexpr std::uint64_t chunk_index_max =
    (std::uint64_t{1} << 62U) / chunk_bytes;  // offsets stay positive
/// Verified chunks that are remembered, about 80 bytes each; past that all are forgotten and hashed
/// again.
constexpr std::size_t verified_max = 128U << 10U;
/// Uses that are remembered before they are written to the index.
constexpr std::size_t uses_max = 256;
constexpr std::chrono::seconds uses_age_max{10};
/// Another daemon holds the folder's lock for one write; longer means that it is stopped.
constexpr std::chrono::milliseconds lock_wait_max{2'000};
constexpr int read_tries_max = 4;

struct KeyHash {
  std::size_t operator()(const ChunkKey& key) const noexcept {
    return OwnerHash{}(key.owner) ^ (static_cast<std::size_t>(key.index) * 0x9e3779b97f4a7c15U);
  }
};
struct KeyEqual {
  bool operator()(const ChunkKey& a, const ChunkKey& b) const noexcept {
    return a.index == b.index && a.owner == b.owner;
  }
};

/// The flock of the folder, for as long as it lives.
class FolderLock {
 public:
  static Result<FolderLock> take(const base::Fd& fd) {
    const auto deadline = base::deadline_in(lock_wait_max);
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) {
        return base::os_error(errno, "cannot lock", "cache folder");
      }
      if (base::SteadyClock::now() >= deadline) {
        return Error{ErrorCode::busy, "the cache folder is locked by another process"};
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return FolderLock(fd.get());
  }
  FolderLock(FolderLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() {
    if (fd_ >= 0) {
      ::flock(fd_, LOCK_UN);
    }
  }

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

std::uint64_t microseconds_now() { return static_cast<std::uint64_t>(base::now_utc() / 1000); }

class LocalChunkStore final : public ChunkStore {
 public:
  explicit LocalChunkStore(const CacheOptions& options)
      : options_(options), files_(options.folder + "/data", options.may_punch) {}
  ~LocalChunkStore() override {
    if (tables_) {
      flush_uses();
    }
  }
  LocalChunkStore(const LocalChunkStore&) = delete;
  LocalChunkStore& operator=(const LocalChunkStore&) = delete;

  Result<void> open();
  Result<bool> read(const ChunkKey& key, ByteRange range, base::ByteSpan out) override;
  bool contains(const ChunkKey& key) override;
  Result<void> write(const ChunkKey& key, base::ByteView bytes) override;
  void drop(const ChunkKey& key) override { remove(key, std::nullopt); }
  void drop_object(const ChunkOwner& owner) override;
  std::uint64_t bytes_used() const override {
    const auto used = room_->bytes_used();
    return used.ok() ? *used : 0;
  }
  std::uint64_t bytes_max() const override { return options_.bytes_max; }
  const std::string& folder() const override { return options_.folder; }
  const CacheCounters& counters() const override { return counters_; }

 private:
  enum class Attempt { hit, miss, changed, bad };

  Result<void> open_index();
  Result<std::optional<ChunkRow>> find(const ChunkKey& key) const;
  Attempt try_read(const ChunkKey& key, const ChunkRow& row, ByteRange range, base::ByteSpan out);
  bool is_verified(const ChunkKey& key, std::uint64_t generation);
  void note_hit(const ChunkKey& key, const ChunkRow& row);
  void flush_uses();
  void remove(const ChunkKey& key, std::optional<std::uint64_t> generation);
  Result<void> finish_write(const ChunkKey& key, const ChunkRow& row);
  Result<bool> write_locked(const ChunkKey& key, base::ByteView bytes);

  const CacheOptions options_;
  CacheCounters counters_;
  base::Fd lock_;
  std::unique_ptr<Tables> tables_;
  DataFiles files_;
  std::unique_ptr<ChunkRoom> room_;

  base::Mutex
      writer_mutex_;  // before memory_mutex_; held across disk I/O, see the top of this file

  base::Mutex memory_mutex_;  // a leaf
  std::unordered_map<ChunkKey, std::uint64_t, KeyHash, KeyEqual> verified_
      HFD_GUARDED_BY(memory_mutex_);
  std::unordered_map<ChunkOwner, std::uint64_t, OwnerHash> uses_ HFD_GUARDED_BY(memory_mutex_);
  base::SteadyClock::time_point uses_flushed_ HFD_GUARDED_BY(memory_mutex_) =
      base::SteadyClock::now();
};

// --- opening
// -----------------------------------------------------------------------------------------

Result<void> LocalChunkStore::open() {
  HFD_TRY_VOID(base::make_folders(options_.folder, 0700));
  HFD_TRY(lock_, base::open_file(options_.folder + "/lock", O_RDWR | O_CREAT));
  base::Lock lock(writer_mutex_);
  HFD_TRY(const FolderLock folder_lock, FolderLock::take(lock_));
  HFD_TRY_VOID(base::make_folders(options_.folder + "/data", 0700));
  HFD_TRY_VOID(open_index());
  room_ = std::make_unique<ChunkRoom>(options_, *tables_, files_, counters_);
  if (tables_->opened_first()) {
    HFD_TRY_VOID(room_->reconcile());
  }
  HFD_TRY([[maybe_unused]] const bool fits, room_->make(0));  // the cap may be lower than last time
  return {};
}

Result<void> LocalChunkStore::open_index() {
  TablesOptions tables;
  tables.folder = options_.folder + "/index";
  tables.names = chunk_table_names();
  auto opened = Tables::open(tables);
  if (!opened.ok() && opened.error().code == ErrorCode::corrupt) {
    // Others cannot come in (we hold the folder's lock); are there any already?
    HFD_TRY(const base::Fd state, base::open_file(tables.folder + "/state", O_RDWR | O_CREAT));
    if (::flock(state.get(), LOCK_EX | LOCK_NB) != 0) {
      return std::move(opened).error().in("cache index").on(tables.folder);
    }
    base::log(base::LogLevel::warning, "starting the cache anew: " + opened.error().message);
    for (const std::string& part : {tables.folder, options_.folder + "/data"}) {
      std::error_code bad;
      std::filesystem::remove_all(part, bad);
      if (bad) {
        return base::os_error(bad.value(), "cannot remove", part);
      }
    }
    HFD_TRY_VOID(base::make_folders(options_.folder + "/data", 0700));
    opened = Tables::open(tables);
  }
  HFD_TRY(tables_, std::move(opened));
  return {};
}

// --- reading
// -----------------------------------------------------------------------------------------

Result<std::optional<ChunkRow>> LocalChunkStore::find(const ChunkKey& key) const {
  HFD_TRY(const auto reading, tables_->begin_read());
  return find_chunk(reading, key);
}

bool LocalChunkStore::contains(const ChunkKey& key) {
  const auto row = find(key);
  return row.ok() && row->has_value();
}

bool LocalChunkStore::is_verified(const ChunkKey& key, std::uint64_t generation) {
  base::Lock lock(memory_mutex_);
  const auto found = verified_.find(key);
  return found != verified_.end() && found->second == generation;
}

void LocalChunkStore::note_hit(const ChunkKey& key, const ChunkRow& row) {
  bool flush = false;
  {
    base::Lock lock(memory_mutex_);
    if (verified_.size() >= verified_max) {
      verified_.clear();
    }
    verified_[key] = row.generation;
    uses_[key.owner] = microseconds_now();
    const auto now = base::SteadyClock::now();
    flush = uses_.size() >= uses_max || now - uses_flushed_ >= uses_age_max;
    if (flush) {
      uses_flushed_ = now;
    }
  }
  if (flush) {
    flush_uses();
  }
}

/// Best effort: without it only the order of eviction is less right.
void LocalChunkStore::flush_uses() {
  std::unordered_map<ChunkOwner, std::uint64_t, OwnerHash> uses;
  {
    base::Lock lock(memory_mutex_);
    uses.swap(uses_);
  }
  if (uses.empty()) {
    return;
  }
  auto writing = tables_->begin_write();
  bool good = writing.ok();
  for (const auto& [owner, last_use] : uses) {
    if (!good) {
      break;
    }
    const auto row = find_object(*writing, owner);
    good = row.ok();
    if (good && *row && (*row)->last_use < last_use) {
      good = put_object(*writing, owner, {(*row)->allocated_bytes, last_use}).ok();
    }
  }
  if (good) {
    [[maybe_unused]] const auto committed = writing->commit();
  }
}

/// One look at the bytes. The row is looked at again afterwards: `changed` when it is another one.
LocalChunkStore::Attempt LocalChunkStore::try_read(const ChunkKey& key, const ChunkRow& row,
                                                   ByteRange range, base::ByteSpan out) {
  const std::uint64_t at = key.index * chunk_bytes;
  const bool verified = is_verified(key, row.generation);
  const bool whole = range.size == row.bytes;
  base::Bytes chunk(verified || whole ? 0 : row.bytes);
  const base::ByteSpan target = verified || whole ? out : base::ByteSpan(chunk);
  const auto fd = files_.open_to_read(key.owner);
  bool good = fd.ok();
  if (good) {
    good = base::read_exactly(**fd, at + (verified ? range.offset : 0), target, "cache").ok();
  }
  if (good && !verified) {
    good = base::xxh3_128(target) == row.hash;
  }
  const auto again = find(key);
  if (!again.ok() || !*again || (*again)->generation != row.generation) {
    return Attempt::changed;
  }
  if (!good) {
    return Attempt::bad;
  }
  if (!chunk.empty()) {
    std::copy_n(chunk.begin() + static_cast<std::ptrdiff_t>(range.offset), out.size(), out.begin());
  }
  return Attempt::hit;
}

Result<bool> LocalChunkStore::read(const ChunkKey& key, ByteRange range, base::ByteSpan out) {
  if (out.size() != range.size || key.index > chunk_index_max) {
    return Error{ErrorCode::invalid_argument, "a range and its buffer differ in size"};
  }
  bool reopened = false;
  for (int i = 0; i < read_tries_max; ++i) {
    const auto row = find(key);
    if (!row.ok() || !*row || !range.within((*row)->bytes)) {
      break;  // also with a damaged index: what cannot be found is fetched again
    }
    const Attempt attempt = try_read(key, **row, range, out);
    if (attempt == Attempt::hit) {
      note_hit(key, **row);
      ++counters_.hits;
      return true;
    }
    if (attempt == Attempt::bad && reopened) {
      ++counters_.bad;
      remove(key, (*row)->generation);
      break;
    }
    if (attempt == Attempt::bad) {
      files_.forget(
          key.owner);  // perhaps the file was made anew by another process since we opened it
      reopened = true;
    }
  }
  ++counters_.misses;
  return false;
}

// --- writing
// -----------------------------------------------------------------------------------------

Result<void> LocalChunkStore::write(const ChunkKey& key, base::ByteView bytes) {
  if (bytes.size() > chunk_bytes || key.index > chunk_index_max) {
    return Error{ErrorCode::invalid_argument, "larger than a chunk"};
  }
  if (bytes.empty()) {
    return {};  // an empty object has no chunks
  }
  const auto stored = write_locked(key, bytes);
  if (!stored.ok() || !*stored) {
    const std::uint64_t count = ++counters_.refused;
    if (!stored.ok() && std::has_single_bit(count)) {  // a full disk would fill the log too
      base::log(base::LogLevel::warning,
                "not cached: " + stored.error().message + ": " + stored.error().object);
    }
  }
  return {};
}

/// False when there is no room.
Result<bool> LocalChunkStore::write_locked(const ChunkKey& key, base::ByteView bytes) {
  ChunkRow row;
  row.bytes = static_cast<std::uint32_t>(bytes.size());
  row.hash = base::xxh3_128(bytes);
  flush_uses();
  base::Lock lock(writer_mutex_);
  HFD_TRY(const FolderLock folder_lock, FolderLock::take(lock_));
  HFD_TRY_VOID(room_->finish_pending());
  const auto there = find(key);  // a damaged row is written over
  if (there.ok() && *there && (*there)->hash == row.hash && (*there)->bytes == row.bytes) {
    return true;
  }
  constexpr std::uint64_t block = 4096;
  HFD_TRY(const bool fits, room_->make((bytes.size() + block - 1) / block * block));
  if (!fits) {
    return false;
  }
  {
    HFD_TRY(auto writing, tables_->begin_write());
    HFD_TRY_VOID(retire_chunk(
        writing, key));  // before the bytes: a crash leaves no place that nobody counts
    HFD_TRY_VOID(writing.commit());
  }
  auto done = files_.write(key, bytes);
  if (done.ok()) {
    done = finish_write(key, row);
  }
  if (!done.ok()) {
    [[maybe_unused]] const auto given_back = room_->finish_pending();  // else the next one does it
    return done.error();
  }
  return true;
}

Result<void> LocalChunkStore::finish_write(const ChunkKey& key, const ChunkRow& row) {
  HFD_TRY(auto writing, tables_->begin_write());
  HFD_TRY(IndexState state, get_state(writing));
  ChunkRow numbered = row;
  numbered.generation = state.next_generation++;
  HFD_TRY_VOID(put_state(writing, state));
  HFD_TRY_VOID(put_chunk(writing, key, numbered));
  HFD_TRY_VOID(put_object(writing, key.owner,
                          {allocated_bytes(files_.path(key.owner)), microseconds_now()}));
  HFD_TRY_VOID(remove_pending(writing, key));
  return writing.commit();
}

// --- dropping
// ----------------------------------------------------------------------------------------

/// With a generation: only if it is still that one. Best effort: the row goes even when its place
/// cannot be given back now.
void LocalChunkStore::remove(const ChunkKey& key, std::optional<std::uint64_t> generation) {
  const auto done = [&]() -> Result<void> {
    base::Lock lock(writer_mutex_);
    HFD_TRY(const FolderLock folder_lock, FolderLock::take(lock_));
    {
      HFD_TRY(auto writing, tables_->begin_write());
      const auto row = find_chunk(writing, key);  // a damaged row goes too
      if (row.ok() && (!*row || (generation && (*row)->generation != *generation))) {
        return {};
      }
      HFD_TRY_VOID(retire_chunk(writing, key));
      HFD_TRY_VOID(writing.commit());
    }
    return room_->finish_pending();
  }();
  if (!done.ok()) {
    base::log(base::LogLevel::warning, "cache: " + done.error().message);
  }
}

void LocalChunkStore::drop_object(const ChunkOwner& owner) {
  const auto done = [&]() -> Result<void> {
    base::Lock lock(writer_mutex_);
    HFD_TRY(const FolderLock folder_lock, FolderLock::take(lock_));
    {
      HFD_TRY(auto writing, tables_->begin_write());
      HFD_TRY_VOID(retire_object(writing, owner));
      HFD_TRY_VOID(writing.commit());
    }
    return room_->finish_pending();
  }();
  if (!done.ok()) {
    base::log(base::LogLevel::warning, "cache: " + done.error().message);
  }
}

}  // namespace

Result<std::unique_ptr<ChunkStore>> ChunkStore::open(const CacheOptions& options) {
  auto store = std::make_unique<LocalChunkStore>(options);
  HFD_TRY_VOID(store->open());
  return std::unique_ptr<ChunkStore>(std::move(store));
}

}  // namespace hfd::store
