// SPDX-License-Identifier: Apache-2.0
// The encoder's main loop. The caller's thread reads the target in order, hashes it, hands blocks
// to the pool and writes finished payloads in order, so that the object's bytes do not depend on
// the number of threads.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/hash.hpp"
#include "codec/delta_writer.hpp"
#include "codec/encode_window.hpp"
#include "codec/index_page.hpp"
#include "codec/zstd_frame.hpp"

namespace hfd::codec {
namespace {

/// A chain is cut here: its last block costs the decoding of all blocks before it.
constexpr std::uint64_t chain_blocks_max = 4096;
constexpr int chain_level = 3;

class Encoder {
 public:
  Encoder(base::ReadableBytes& target, const std::vector<SourceFile>& sources,
          const EncodeOptions& options, base::ThreadPool& pool, const base::ByteSink& out)
      : target_(target), sources_(sources), options_(options), pool_(pool), out_(out) {}

  Result<EncodedDelta> run() {
    HFD_TRY(plan_, plan_encode(target_, sources_, options_));
    data_.target_bytes = target_.size();
    data_.block_log2 = plan_.block_log2;
    data_.tables = plan_.tables;
    HFD_TRY_VOID(encode_blocks());
    HFD_TRY_VOID(write_pages());
    return finish();
  }

 private:
  Result<void> encode_blocks() {
    EncodeWindow window(plan_, sources_, pool_);
    const std::uint64_t blocks = data_.block_count();
    for (std::uint64_t block = 0; block < blocks; ++block) {
      if (options_.cancelled && options_.cancelled()) {
        return Error{ErrorCode::stale, "the encoding was cancelled"};
      }
      while (window.full()) {
        HFD_TRY_VOID(take(window.finish_oldest()));
      }
      auto job = std::make_unique<BlockJob>();
      job->block = block;
      job->range = data_.block_range(block);
      job->target.resize(static_cast<std::size_t>(job->range.size));
      HFD_TRY_VOID(target_.read_at(job->range.offset, job->target));
      target_hash_.update(job->target);
      window.start(std::move(job));
    }
    while (!window.empty()) {
      HFD_TRY_VOID(take(window.finish_oldest()));
    }
    return {};
  }

  /// Writes the payload of the next block.
  Result<void> take(std::unique_ptr<BlockJob> job) {
    if (job->error) {
      return std::move(*job->error);
    }
    BlockEntry entry;
    entry.hash = job->hash;
    entry.mode = job->coded.mode;
    if (plan_.chained && entry.mode == BlockMode::raw) {
      chain(*job, entry);
    } else {
      chain_.reset();
    }
    entry.payload_bytes = job->coded.payload.size();
    changed_ += job->changed;
    HFD_TRY_VOID(write(job->coded.payload));
    payload_bytes_ += entry.payload_bytes;
    entries_.push_back(entry);
    return {};
  }

  /// Replaces the payload of a raw block by the next piece of a zstd stream, unless the block is
  /// clearly smaller alone.
  void chain(BlockJob& job, BlockEntry& entry) {
    if (chain_ && chain_length_ == chain_blocks_max) {
      chain_.reset();
    }
    if (!chain_) {
      chain_ = std::make_unique<ZstdChain>(chain_level);
      chain_length_ = 0;
      chain_bytes_ = 0;
    }
    base::Bytes piece;
    chain_->append(job.target, piece);
    if (job.coded.payload.size() < piece.size() - piece.size() / 10) {
      chain_.reset();
      return;
    }
    entry.chained = true;
    entry.back_blocks = chain_length_;
    entry.back_bytes = chain_bytes_;
    ++chain_length_;
    chain_bytes_ += piece.size();
    job.coded.payload = std::move(piece);
  }

  Result<void> write(base::ByteView bytes) {
    object_hash_.update(bytes);
    object_bytes_ += bytes.size();
    return bytes.empty() ? Result<void>{} : out_(bytes);
  }

  Result<void> write_pages() {
    for (std::size_t first = 0; first < entries_.size(); first += data_.page_blocks) {
      const std::size_t count = std::min<std::size_t>(data_.page_blocks, entries_.size() - first);
      const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<BlockEntry> page_entries(begin, begin + static_cast<std::ptrdiff_t>(count));
      const base::Bytes page = write_page(page_entries, data_.hash_bytes);
      PageEntry entry;
      entry.stored_bytes = page.size();
      for (const BlockEntry& block : page_entries) {
        entry.payload_bytes += block.payload_bytes;
      }
      entry.hash = page.empty() ? PageHash{} : page_hash(page);
      data_.pages.push_back(entry);
      HFD_TRY_VOID(write(page));
    }
    return {};
  }

  /// Sources that some block not coded raw needs, by their number in the caller's list.
  std::vector<bool> used_sources() const {
    std::vector<bool> used(sources_.size(), false);
    for (const Extent& extent : plan_.map.extents) {
      if (extent.use == ExtentUse::literal || used[extent.source]) {
        continue;
      }
      const std::uint64_t first = extent.target.offset >> data_.block_log2;
      const std::uint64_t last = (extent.target.end() - 1) >> data_.block_log2;
      for (std::uint64_t block = first; block <= last; ++block) {
        const BlockMode mode = entries_[static_cast<std::size_t>(block)].mode;
        if (mode != BlockMode::raw && mode != BlockMode::zero) {
          used[extent.source] = true;
          break;
        }
      }
    }
    return used;
  }

  /// Renumbers the sources that are used; extents of others only say how to split the bytes.
  void keep_used_sources() {
    const std::vector<bool> used = used_sources();
    std::vector<std::uint32_t> numbers(sources_.size(), 0);
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (used[i]) {
        numbers[i] = static_cast<std::uint32_t>(data_.sources.size());
        data_.sources.push_back({sources_[i].sha256, sources_[i].reader->size()});
      }
    }
    data_.extents = plan_.map.extents;
    for (Extent& extent : data_.extents) {
      if (extent.use != ExtentUse::literal && used[extent.source]) {
        extent.source = numbers[extent.source];
      } else {
        extent.use = ExtentUse::literal;
        extent.source = 0;
        extent.from = {};
      }
    }
    // Bytes that nothing covers are literal bytes anyway.
    std::erase_if(data_.extents, [](const Extent& extent) {
      return extent.use == ExtentUse::literal && extent.kind == WordKind::w1;
    });
    merge_extents(data_.extents);
  }

  Result<EncodedDelta> finish() {
    keep_used_sources();
    data_.target_sha256 = {target_hash_.finish()};
    data_.total_elements = plan_.map.total_elements;
    data_.changed_elements = changed_ + plan_.map.literal_elements;
    const base::Bytes directory = write_directory(data_, object_bytes_);
    EncodedDelta encoded;
    encoded.directory = {object_bytes_, directory.size()};
    HFD_TRY_VOID(write(directory));
    encoded.directory_sha256 = base::content_hash(directory);
    encoded.target_sha256 = data_.target_sha256;
    encoded.target_bytes = data_.target_bytes;
    encoded.object = {object_hash_.finish()};
    encoded.object_bytes = object_bytes_;
    encoded.sources = data_.sources;
    encoded.changed_elements = data_.changed_elements;
    encoded.total_elements = data_.total_elements;
    return encoded;
  }

  base::ReadableBytes& target_;
  const std::vector<SourceFile>& sources_;
  const EncodeOptions& options_;
  base::ThreadPool& pool_;
  const base::ByteSink& out_;

  EncodePlan plan_;
  DirectoryData data_;
  std::vector<BlockEntry> entries_;
  base::Sha256 target_hash_;
  base::Sha256 object_hash_;
  std::uint64_t object_bytes_ = 0;
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t changed_ = 0;
  std::unique_ptr<ZstdChain> chain_;
  std::uint64_t chain_length_ = 0;
  std::uint64_t chain_bytes_ = 0;
};

}  // namespace

Result<EncodedDelta> encode_delta(base::ReadableBytes& target,
                                  const std::vector<SourceFile>& sources,
                                  const EncodeOptions& options, base::ThreadPool& pool,
                                  const base::ByteSink& out) {
  const std::uint32_t block_bytes = options.block_bytes;
  if (!std::has_single_bit(block_bytes) || block_bytes < (1U << block_log2_min) ||
      block_bytes > (1U << block_log2_max)) {
    return Error{ErrorCode::invalid_argument, "a block has 64 KiB to 8 MiB, a power of two"};
  }
  if (target.size() > target_bytes_max) {
    return Error{ErrorCode::invalid_argument, "the target is too large for a delta object"};
  }
  Encoder encoder(target, sources, options, pool, out);
  return encoder.run();
}

}  // namespace hfd::codec
