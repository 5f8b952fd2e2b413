// SPDX-License-Identifier: Apache-2.0
#include "rebuild/chunk_fetcher.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace hfd::rebuild {
namespace {

using store::chunk_bytes;

ByteRange chunk_range(const FetchSource& source, std::uint64_t first_chunk, std::uint64_t chunk_count) {
  const std::uint64_t offset = first_chunk * chunk_bytes;
  return {offset, std::min(chunk_count * chunk_bytes, source.bytes - offset)};
}

}  // namespace

std::size_t ChunkFetcher::KeyHash::operator()(const store::ChunkKey& key) const noexcept {
  std::size_t owner = 0;
  std::memcpy(&owner, key.owner.data(), sizeof owner);
  return owner ^ (static_cast<std::size_t>(key.index) * 0x9E3779B97F4A7C15ULL);
}

ChunkFetcher::ChunkFetcher(store::ChunkStore* cache, std::chrono::milliseconds deadline)
    : cache_(cache), deadline_(deadline) {}

void ChunkFetcher::read_into(const FetchSource& source, ByteRange range, base::ByteSpan out, Done done) {
  HFD_CHECK(out.size() == range.size);
  if (!range.within(source.bytes)) {
    done(Error{ErrorCode::corrupt, "a read goes past the end of an object", source.name});
    return;
  }
  if (range.size == 0) {
    done({});
    return;
  }
  if (cache_ == nullptr) {
    source.remote->read(source.name, range, base::deadline_in(deadline_),
                        [out, done = std::move(done)](Result<base::Bytes> bytes) {
                          if (!bytes.ok()) {
                            done(std::move(bytes).error());
                            return;
                          }
                          std::memcpy(out.data(), bytes->data(), out.size());
                          done({});
                        });
    return;
  }
  const auto join = Join::create(std::move(done));
  std::uint64_t run_first = 0;
  std::uint64_t run_count = 0;
  const auto flush = [&] {
    if (run_count > 0) {
      request(source, run_first, run_count);
      run_count = 0;
    }
  };
  for (std::uint64_t chunk = range.offset / chunk_bytes; chunk * chunk_bytes < range.end(); ++chunk) {
    const std::uint64_t start = std::max(range.offset, chunk * chunk_bytes);
    const std::uint64_t end = std::min(range.end(), (chunk + 1) * chunk_bytes);
    const base::ByteSpan part_out = out.subspan(start - range.offset, end - start);
    const ByteRange part{start - chunk * chunk_bytes, end - start};
    const store::ChunkKey key{source.owner, chunk};
    const auto cached = cache_->read(key, part, part_out);
    if (cached.ok() && *cached) {
      continue;
    }
    join->add();
    if (!wait_for(key, Waiter{part, part_out, join})) {
      continue;
    }
    if (run_count > 0 && (run_first + run_count != chunk || (run_count + 1) * chunk_bytes > request_bytes_max)) {
      flush();
    }
    if (run_count == 0) {
      run_first = chunk;
    }
    ++run_count;
  }
  flush();
  join->end({});
}

bool ChunkFetcher::wait_for(const store::ChunkKey& key, Waiter waiter) {
  const base::Lock lock(mutex_);
  std::vector<Waiter>& waiters = under_way_[key];
  waiters.push_back(std::move(waiter));
  return waiters.size() == 1;
}

std::vector<ChunkFetcher::Waiter> ChunkFetcher::take_waiters(const store::ChunkKey& key) {
  const base::Lock lock(mutex_);
  const auto found = under_way_.find(key);
  HFD_CHECK(found != under_way_.end());
  std::vector<Waiter> waiters = std::move(found->second);
  under_way_.erase(found);
  return waiters;
}

void ChunkFetcher::request(const FetchSource& source, std::uint64_t first_chunk, std::uint64_t chunk_count) {
  source.remote->read(source.name, chunk_range(source, first_chunk, chunk_count), base::deadline_in(deadline_),
                      [this, source, first_chunk, chunk_count](Result<base::Bytes> bytes) {
                        arrived(source, first_chunk, chunk_count, std::move(bytes));
                      });
}

void ChunkFetcher::arrived(const FetchSource& source, std::uint64_t first_chunk, std::uint64_t chunk_count,
                           Result<base::Bytes> bytes) {
  for (std::uint64_t i = 0; i < chunk_count; ++i) {
    const store::ChunkKey key{source.owner, first_chunk + i};
    base::ByteView chunk;
    if (bytes.ok()) {
      const std::uint64_t offset = i * chunk_bytes;
      chunk = base::ByteView(*bytes).subspan(offset, std::min<std::uint64_t>(chunk_bytes, bytes->size() - offset));
      // Best effort: a cache that cannot take it only costs another fetch later.
      [[maybe_unused]] const auto stored = cache_->write(key, chunk);
    }
    for (const Waiter& waiter : take_waiters(key)) {
      if (!bytes.ok()) {
        waiter.join->end(Error(bytes.error()));
        continue;
      }
      std::memcpy(waiter.out.data(), chunk.data() + waiter.part.offset, waiter.out.size());
      waiter.join->end({});
    }
  }
}

void ChunkFetcher::drop(const FetchSource& source, ByteRange range) {
  if (cache_ == nullptr) {
    return;
  }
  for (std::uint64_t chunk = range.offset / chunk_bytes; chunk * chunk_bytes < range.end(); ++chunk) {
    cache_->drop({source.owner, chunk});
  }
}

}  // namespace hfd::rebuild
