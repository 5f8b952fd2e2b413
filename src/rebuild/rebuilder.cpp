// SPDX-License-Identifier: Apache-2.0
// The life of a read: read() -> admitted -> read_into() -> one get() a block -> load_block(): page,
// plan, then payload and source bytes in parallel (sources by read_into() of their own content, so a
// chain of deltas is a tree of such calls) -> decode on the pool -> verified -> all who wait.
#include "rebuild/rebuilder.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <variant>

#include "base/answer.hpp"
#include "base/hash.hpp"
#include "base/log.hpp"
#include "base/thread_pool.hpp"
#include "codec/zstd_frame.hpp"
#include "rebuild/content_index.hpp"
#include "rebuild/read_ahead.hpp"

namespace hfd::rebuild {
namespace {

using lineage::BlobEdge;
using lineage::UpstreamEdge;

/// Small blobs are read whole; a manifest that names a larger one as such is not ours.
constexpr std::uint64_t small_blob_bytes_max = 1ULL << 20U;
/// Read-ahead blocks under way at once; demand reads come first by being admitted without this limit.
constexpr std::size_t ahead_active_max = 16;
constexpr std::uint64_t ahead_piece_bytes = 1ULL << 20U;

struct BlockKey {
  ContentHash content;
  std::uint64_t block = 0;
  bool operator==(const BlockKey&) const = default;
};
struct BlockKeyHash {
  std::size_t operator()(const BlockKey& key) const noexcept {
    return std::hash<ContentHash>{}(key.content) ^ (static_cast<std::size_t>(key.block) * 0x9E3779B97F4A7C15ULL);
  }
};
std::uint64_t weigh_bytes(const base::Bytes& bytes) { return bytes.size(); }

using BlockCache = FlightCache<BlockKey, base::Bytes, BlockKeyHash>;
using BlockTake = BlockCache::Take;

/// The part of `range` that lies in block number `block`.
ByteRange part_in_block(ByteRange range, std::uint64_t block, std::uint64_t block_bytes) {
  const std::uint64_t start = std::max(range.offset, block * block_bytes);
  return {start, std::min(range.end(), (block + 1) * block_bytes) - start};
}

Result<base::Bytes> unpack(base::ByteView frame, std::uint64_t content_bytes) {
  base::Bytes content(content_bytes);
  HFD_TRY_VOID(codec::zstd_decompress(frame, {}, content));
  return content;
}

/// One block being rebuilt.
struct BlockJob {
  Recipe recipe;
  DirectoryPtr directory;
  codec::BlockPlan plan;
  base::Bytes payload;
  base::Bytes source;
  bool again = false;  ///< the second try, with fresh bytes
  BlockTake take;
};
using JobPtr = std::shared_ptr<BlockJob>;

class RebuilderImpl final : public Rebuilder {
 public:
  RebuilderImpl(remote::Remote& bucket, UpstreamFinder upstream, store::ChunkStore* cache,
                const RebuildOptions& options)
      : options_(options),
        fetcher_(cache, options.deadline),
        index_(bucket, std::move(upstream), fetcher_, counters_),
        blocks_(options.pool_bytes_max, weigh_bytes),
        read_ahead_(options.read_ahead_bytes_max),
        decoders_("hfd-decode", std::max<std::size_t>(1, options.decode_threads)) {}

  ~RebuilderImpl() override {
    const base::Lock lock(mutex_);
    while (under_way_ > 0) {
      idle_.wait(mutex_);
    }
  }

  void read(const ContentRef& content, ByteRange range, ReadDone done) override;
  const Counters& counters() const override { return counters_; }

 private:
  struct Request {
    Recipe recipe;
    ByteRange range;
    ReadDone done;
  };

  bool answer_at_once(const Recipe& recipe, ByteRange range, const ReadDone& done);
  bool admit_locked(const ContentHash& content) HFD_REQUIRES(mutex_);
  void start(Request request);
  void finished(const ContentHash& content);
  void begin_one();
  void end_one();
  void look_ahead(const Recipe& recipe, ByteRange range);
  void ahead_piece(const Recipe& recipe, ByteRange piece);

  void read_into(const Recipe& recipe, ByteRange range, base::ByteSpan out, Done done);
  void read_small_blob(const Recipe& recipe, ByteRange range, base::ByteSpan out, Done done);
  void load_small_blob(const Recipe& recipe, bool again, BlockTake take);
  void read_blocks(const Recipe& recipe, const DirectoryPtr& directory, ByteRange range, base::ByteSpan out,
                   Done done);
  void load_block(const Recipe& recipe, const DirectoryPtr& directory, std::uint64_t block, BlockTake take);
  void fetch_parts(const JobPtr& job);
  void decode(const JobPtr& job);
  void forget_parts(const BlockJob& job);

  const RebuildOptions options_;
  Counters counters_;
  ChunkFetcher fetcher_;
  ContentIndex index_;
  BlockCache blocks_;
  ReadAhead read_ahead_;

  base::Mutex mutex_;
  base::Condition idle_;
  std::size_t under_way_ HFD_GUARDED_BY(mutex_) = 0;  ///< requests and read-ahead pieces not ended
  std::size_t active_ HFD_GUARDED_BY(mutex_) = 0;
  std::size_t ahead_active_ HFD_GUARDED_BY(mutex_) = 0;
  std::unordered_map<ContentHash, std::size_t> active_of_ HFD_GUARDED_BY(mutex_);
  /// Not admitted yet. Bounded by the kernel's max_background (vfs) and by callers that wait (open()).
  std::deque<Request> queue_ HFD_GUARDED_BY(mutex_);

  base::ThreadPool decoders_;  // last: joined first, its tasks use all of the above
};

void RebuilderImpl::begin_one() {
  const base::Lock lock(mutex_);
  ++under_way_;
}

void RebuilderImpl::end_one() {
  const base::Lock lock(mutex_);
  if (--under_way_ == 0) {
    idle_.notify_all();
  }
}

void RebuilderImpl::read(const ContentRef& content, ByteRange range, ReadDone done) {
  auto recipe = index_.recipe(content);
  if (!recipe.ok()) {
    done(std::move(recipe).error());
    return;
  }
  if (!range.within(recipe->content->bytes)) {
    done(Error{ErrorCode::invalid_argument, "a read goes past the end of a content", content.sha256.hex()});
    return;
  }
  if (range.size == 0) {
    done(base::Bytes());
    return;
  }
  begin_one();
  if (answer_at_once(*recipe, range, done)) {
    look_ahead(*recipe, range);
    end_one();
    return;
  }
  Request request{*recipe, range, std::move(done)};
  {
    const base::Lock lock(mutex_);
    if (!admit_locked(content.sha256)) {
      queue_.push_back(std::move(request));
      return;
    }
  }
  start(std::move(request));
  look_ahead(*recipe, range);
}

bool RebuilderImpl::answer_at_once(const Recipe& recipe, ByteRange range, const ReadDone& done) {
  if (!recipe.has_blocks()) {
    return false;
  }
  const DirectoryPtr directory = index_.known_directory(recipe);
  if (!directory) {
    return false;
  }
  const std::uint64_t block_bytes = directory->block_bytes();
  std::vector<BlockCache::Pointer> found;
  for (std::uint64_t block = range.offset / block_bytes; block * block_bytes < range.end(); ++block) {
    found.push_back(blocks_.find(BlockKey{recipe.ref.sha256, block}));
    if (!found.back()) {
      return false;
    }
  }
  base::Bytes out(range.size);
  std::uint64_t block = range.offset / block_bytes;
  for (const auto& bytes : found) {
    const ByteRange part = part_in_block(range, block, block_bytes);
    std::memcpy(out.data() + (part.offset - range.offset), bytes->data() + (part.offset - block * block_bytes),
                part.size);
    ++block;
  }
  done(std::move(out));
  return true;
}

bool RebuilderImpl::admit_locked(const ContentHash& content) {
  const auto found = active_of_.find(content);
  const std::size_t of_content = found == active_of_.end() ? 0 : found->second;
  if (active_ >= options_.active_max || of_content >= options_.active_per_content_max) {
    return false;
  }
  ++active_;
  ++active_of_[content];
  return true;
}

void RebuilderImpl::start(Request request) {
  auto out = std::make_shared<base::Bytes>(request.range.size);
  const base::ByteSpan span(*out);
  const Recipe recipe = std::move(request.recipe);
  read_into(recipe, request.range, span,
            [this, out, content = recipe.ref.sha256, done = std::move(request.done)](Result<void> result) {
              if (result.ok()) {
                done(std::move(*out));
              } else {
                done(std::move(result).error());
              }
              finished(content);
            });
}

void RebuilderImpl::finished(const ContentHash& content) {
  std::vector<Request> admitted;
  {
    const base::Lock lock(mutex_);
    --active_;
    if (--active_of_[content] == 0) {
      active_of_.erase(content);
    }
    for (auto waiting = queue_.begin(); waiting != queue_.end() && active_ < options_.active_max;) {
      if (admit_locked(waiting->recipe.ref.sha256)) {
        admitted.push_back(std::move(*waiting));
        waiting = queue_.erase(waiting);
      } else {
        ++waiting;
      }
    }
  }
  for (Request& request : admitted) {
    // Through the pool: a long queue of hits must not become a deep stack of calls.
    decoders_.post([this, shared = std::make_shared<Request>(std::move(request))] { start(std::move(*shared)); });
  }
  end_one();
}

void RebuilderImpl::look_ahead(const Recipe& recipe, ByteRange range) {
  const ByteRange ahead = read_ahead_.note(recipe.ref.sha256, range, recipe.content->bytes);
  for (std::uint64_t offset = ahead.offset; offset < ahead.end(); offset += ahead_piece_bytes) {
    {
      const base::Lock lock(mutex_);
      if (ahead_active_ >= ahead_active_max) {
        return;
      }
      ++ahead_active_;
      ++under_way_;
    }
    ahead_piece(recipe, {offset, std::min(ahead_piece_bytes, ahead.end() - offset)});
  }
}

void RebuilderImpl::ahead_piece(const Recipe& recipe, ByteRange piece) {
  auto scratch = std::make_shared<base::Bytes>(piece.size);
  const base::ByteSpan span(*scratch);
  // What comes of it is in the caches; an error will be met again by the reader who needs the bytes.
  read_into(recipe, piece, span, [this, scratch](const Result<void>& /*result*/) {
    {
      const base::Lock lock(mutex_);
      --ahead_active_;
    }
    end_one();
  });
}

void RebuilderImpl::read_into(const Recipe& recipe, ByteRange range, base::ByteSpan out, Done done) {
  if (std::holds_alternative<UpstreamEdge>(*recipe.edge)) {
    fetcher_.read_into(recipe.source, range, out, std::move(done));
    return;
  }
  if (!recipe.has_blocks()) {
    read_small_blob(recipe, range, out, std::move(done));
    return;
  }
  index_.directory(recipe, [this, recipe, range, out, done = std::move(done)](Result<DirectoryPtr> directory) {
    if (!directory.ok()) {
      done(std::move(directory).error());
      return;
    }
    read_blocks(recipe, *directory, range, out, done);
  });
}

void RebuilderImpl::read_small_blob(const Recipe& recipe, ByteRange range, base::ByteSpan out, Done done) {
  blocks_.get(
      BlockKey{recipe.ref.sha256, 0}, [this, recipe](BlockTake take) { load_small_blob(recipe, false, std::move(take)); },
      [range, out, done = std::move(done)](Result<BlockCache::Pointer> blob) {
        if (!blob.ok()) {
          done(std::move(blob).error());
          return;
        }
        std::memcpy(out.data(), (*blob)->data() + range.offset, range.size);
        done({});
      });
}

void RebuilderImpl::load_small_blob(const Recipe& recipe, bool again, BlockTake take) {
  if (recipe.source.bytes > small_blob_bytes_max || recipe.content->bytes > small_blob_bytes_max) {
    take(Error{ErrorCode::corrupt, "a blob that is no container of blocks is too large", recipe.source.name});
    return;
  }
  auto stored = std::make_shared<base::Bytes>(recipe.source.bytes);
  const base::ByteSpan span(*stored);
  fetcher_.read_into(recipe.source, {0, recipe.source.bytes}, span,
                     [this, recipe, again, stored, take = std::move(take)](Result<void> read) mutable {
                       if (!read.ok()) {
                         take(std::move(read).error().on(recipe.source.name));
                         return;
                       }
                       const bool packed = std::get<BlobEdge>(*recipe.edge).encoding == BlobEdge::Encoding::zstd;
                       Result<base::Bytes> bytes = packed ? unpack(*stored, recipe.content->bytes) : std::move(*stored);
                       if (bytes.ok() && base::content_hash(*bytes) != recipe.ref.sha256) {
                         bytes = Error{ErrorCode::corrupt, "a blob has the wrong sha256"};
                       }
                       if (!bytes.ok()) {
                         counters_.blocks_bad.fetch_add(1);
                         fetcher_.drop(recipe.source, {0, recipe.source.bytes});
                         if (!again) {
                           load_small_blob(recipe, true, std::move(take));
                           return;
                         }
                         take(std::move(bytes).error().on(recipe.source.name));
                         return;
                       }
                       counters_.blocks_rebuilt.fetch_add(1);
                       counters_.blocks_healed.fetch_add(again ? 1 : 0);
                       take(std::make_shared<const base::Bytes>(std::move(*bytes)));
                     });
}

void RebuilderImpl::read_blocks(const Recipe& recipe, const DirectoryPtr& directory, ByteRange range,
                                base::ByteSpan out, Done done) {
  const std::uint64_t block_bytes = directory->block_bytes();
  const auto join = Join::create(std::move(done));
  for (std::uint64_t block = range.offset / block_bytes; block * block_bytes < range.end(); ++block) {
    const ByteRange part = part_in_block(range, block, block_bytes);
    const base::ByteSpan part_out = out.subspan(part.offset - range.offset, part.size);
    const std::uint64_t within = part.offset - block * block_bytes;
    join->add();
    blocks_.get(
        BlockKey{recipe.ref.sha256, block},
        [this, recipe, directory, block](BlockTake take) { load_block(recipe, directory, block, std::move(take)); },
        [part_out, within, join](Result<BlockCache::Pointer> bytes) {
          if (!bytes.ok()) {
            join->end(std::move(bytes).error());
            return;
          }
          std::memcpy(part_out.data(), (*bytes)->data() + within, part_out.size());
          join->end({});
        });
  }
  join->end({});
}

void RebuilderImpl::load_block(const Recipe& recipe, const DirectoryPtr& directory, std::uint64_t block,
                               BlockTake take) {
  index_.page(recipe, directory, block,
              [this, recipe, directory, block, take = std::move(take)](Result<PagePtr> page) mutable {
                if (!page.ok()) {
                  take(std::move(page).error());
                  return;
                }
                auto job = std::make_shared<BlockJob>();
                job->recipe = recipe;
                job->directory = directory;
                job->plan = (*page)->plan(block);
                job->take = std::move(take);
                fetch_parts(job);
              });
}

void RebuilderImpl::fetch_parts(const JobPtr& job) {
  job->payload.resize(job->plan.payload.size);
  job->source.resize(job->plan.source_bytes());
  const auto join = Join::create([this, job](Result<void> fetched) {
    if (!fetched.ok()) {
      job->take(std::move(fetched).error().on(job->recipe.source.name));
      return;
    }
    decoders_.post([this, job] { decode(job); });
  });
  if (!job->payload.empty()) {
    join->add();
    fetcher_.read_into(job->recipe.source, job->plan.payload, job->payload,
                       [join](Result<void> part) { join->end(std::move(part)); });
  }
  std::size_t at = 0;
  for (const codec::SourceSpan& span : job->plan.sources) {
    const base::ByteSpan out = base::ByteSpan(job->source).subspan(at, span.range.size);
    at += span.range.size;
    const ContentHash& source_hash = job->directory->sources()[span.source].sha256;
    auto source = index_.recipe(ContentRef{job->recipe.ref.version, source_hash});
    join->add();
    if (!source.ok()) {
      join->end(std::move(source).error());
      continue;
    }
    read_into(*source, span.range, out, [join](Result<void> part) { join->end(std::move(part)); });
  }
  join->end({});
}

void RebuilderImpl::decode(const JobPtr& job) {
  base::Bytes out(job->plan.target.size);
  auto decoded = codec::decode_block(*job->directory, job->plan, job->payload, job->source, out);
  if (decoded.ok()) {
    counters_.blocks_rebuilt.fetch_add(1);
    if (job->again) {
      counters_.blocks_healed.fetch_add(1);
    }
    job->take(std::make_shared<const base::Bytes>(std::move(out)));
    return;
  }
  counters_.blocks_bad.fetch_add(1);
  forget_parts(*job);
  if (!job->again) {
    job->again = true;
    fetch_parts(job);
    return;
  }
  Error error = std::move(decoded).error().on(job->recipe.source.name).in("block " + std::to_string(job->plan.block));
  base::log(base::LogLevel::error, error.object + ": " + error.message);
  job->take(std::move(error));
}

void RebuilderImpl::forget_parts(const BlockJob& job) {
  fetcher_.drop(job.recipe.source, job.plan.payload);
  for (const codec::SourceSpan& span : job.plan.sources) {
    const ContentHash& source_hash = job.directory->sources()[span.source].sha256;
    const auto source = index_.recipe(ContentRef{job.recipe.ref.version, source_hash});
    // Blocks of coded sources were verified when they were made; only raw upstream bytes are in doubt.
    if (source.ok() && std::holds_alternative<UpstreamEdge>(*source->edge)) {
      fetcher_.drop(source->source, span.range);
    }
  }
}

/// read() behind a face that waits.
class ContentBytes final : public base::ReadableBytes {
 public:
  ContentBytes(Rebuilder& rebuilder, ContentRef content, std::uint64_t bytes)
      : rebuilder_(rebuilder), content_(std::move(content)), bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_; }
  Result<void> read_at(std::uint64_t offset, base::ByteSpan out) override {
    HFD_TRY(const base::Bytes bytes, rebuilder_.read_blocking(content_, {offset, out.size()}));
    if (!out.empty()) {
      std::memcpy(out.data(), bytes.data(), out.size());
    }
    return {};
  }

 private:
  Rebuilder& rebuilder_;
  ContentRef content_;
  std::uint64_t bytes_;
};

}  // namespace

std::unique_ptr<Rebuilder> Rebuilder::create(remote::Remote& bucket, UpstreamFinder upstream,
                                             store::ChunkStore* cache, const RebuildOptions& options) {
  return std::make_unique<RebuilderImpl>(bucket, std::move(upstream), cache, options);
}

std::unique_ptr<base::ReadableBytes> Rebuilder::open(const ContentRef& content) {
  const auto& contents = content.version->manifest.contents;
  const auto found = contents.find(content.sha256);
  const std::uint64_t bytes = found == contents.end() ? 0 : found->second.bytes;
  return std::make_unique<ContentBytes>(*this, content, bytes);
}

Result<base::Bytes> Rebuilder::read_blocking(const ContentRef& content, ByteRange range) {
  const auto answer = std::make_shared<base::Answer<base::Bytes>>();
  read(content, range, [answer](Result<base::Bytes> bytes) { answer->give(std::move(bytes)); });
  return answer->wait();
}

}  // namespace hfd::rebuild
