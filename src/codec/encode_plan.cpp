// SPDX-License-Identifier: Apache-2.0
// The size promise (never larger than zstd -3 of the whole file + 1 %) is decided here: blocks are
// coded alone, so a file whose repeats reach further than a block, or that shrinks so much that a
// block's index entry counts, needs larger blocks, or blocks that continue one zstd stream. Up to
// three windows of the target are compressed both ways to tell; files up to their sum are tried
// whole.
#include "codec/encode_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "codec/class_tables.hpp"
#include "codec/directory.hpp"
#include "codec/zstd_frame.hpp"

namespace hfd::codec {
namespace {

constexpr std::uint64_t sample_blocks = 24;
constexpr std::uint64_t window_bytes = 16U << 20U;
constexpr std::uint64_t window_count = 3;
/// Index bytes of a block: hash, length, mode.
constexpr std::uint64_t entry_bytes = 20;
/// Bytes of an object that do not depend on its size, less the 64 that the promise allows.
constexpr std::uint64_t fixed_bytes = 56;
/// Files whose literal bytes are at most this many are worth slow levels: it stays below a second.
constexpr std::uint64_t try_harder_bytes = 8U << 20U;

struct Sample {
  ByteRange range;
  base::Bytes target;
  base::Bytes source;
  BlockLayout layout;
};

Result<Sample> read_sample(base::ReadableBytes& target, const std::vector<SourceFile>& sources,
                           const SourceMap& map, ByteRange range) {
  Sample sample;
  sample.range = range;
  sample.layout = block_layout(map.extents, range, true);
  sample.target.resize(static_cast<std::size_t>(range.size));
  HFD_TRY_VOID(target.read_at(range.offset, sample.target));
  HFD_TRY(sample.source, read_sources(sample.layout, sources));
  return sample;
}

/// Blocks spread evenly over the target.
Result<std::vector<Sample>> read_samples(base::ReadableBytes& target,
                                         const std::vector<SourceFile>& sources,
                                         const SourceMap& map, std::uint64_t block_bytes) {
  const std::uint64_t blocks = (target.size() + block_bytes - 1) / block_bytes;
  const std::uint64_t count = std::min(blocks, sample_blocks);
  std::vector<Sample> samples;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t offset = i * blocks / count * block_bytes;
    const std::uint64_t size =
        std::min({block_bytes, target.size() - offset, std::uint64_t{256U << 10U}});
    HFD_TRY(Sample sample, read_sample(target, sources, map, {offset, size}));
    samples.push_back(std::move(sample));
  }
  return samples;
}

ClassTables choose_tables(const std::vector<Sample>& samples, std::uint64_t block_bytes) {
  std::array<ChangeHistogram, word_kind_count> histograms;
  for (const Sample& sample : samples) {
    for (const Piece& piece : sample.layout.pieces) {
      if (piece.group < group_literal) {
        histograms.at(piece.group)
            .add(static_cast<WordKind>(piece.group),
                 base::ByteView(sample.source).subspan(piece.source_at, piece.source_bytes),
                 base::ByteView(sample.target).subspan(piece.at, piece.bytes));
      }
    }
  }
  ClassTables tables;
  for (unsigned kind = 0; kind < word_kind_count; ++kind) {
    const std::uint64_t words = block_bytes / word_bytes(static_cast<WordKind>(kind));
    tables.at(kind) = choose_classes(histograms.at(kind), words);
  }
  return tables;
}

/// True when at least half of the samples gain nothing from a source.
bool mostly_raw(const std::vector<Sample>& samples, const ClassTables& tables) {
  std::size_t raw = 0;
  for (const Sample& sample : samples) {
    const CodedBlock coded =
        encode_block(sample.layout, tables, sample.source, sample.target, BlockCodecOptions{});
    raw += coded.mode == BlockMode::raw ? 1U : 0U;
  }
  return raw * 2 >= samples.size();
}

std::uint64_t zstd_size(base::ByteView bytes) {
  base::Bytes out;
  return zstd_compress(bytes, {}, 3, out);
}

/// Size of zstd -3 over blocks of `block` bytes, index entries included.
std::uint64_t blocked_zstd_size(base::ByteView window, std::uint64_t block) {
  std::uint64_t sum = fixed_bytes;
  for (std::uint64_t at = 0; at < window.size(); at += block) {
    const std::uint64_t size = std::min<std::uint64_t>(block, window.size() - at);
    sum += std::min(zstd_size(window.subspan(at, size)), size) + entry_bytes;
  }
  return sum;
}

/// Size of what the encoder really makes of the window.
std::uint64_t blocked_size(const EncodePlan& plan, base::ByteView window, std::uint64_t offset,
                           std::uint64_t block, const BlockCodecOptions& options) {
  std::uint64_t sum = fixed_bytes;
  for (std::uint64_t at = 0; at < window.size(); at += block) {
    const std::uint64_t size = std::min<std::uint64_t>(block, window.size() - at);
    const BlockLayout layout = block_layout(plan.map.extents, {offset + at, size}, false);
    sum += encode_block(layout, plan.tables, {}, window.subspan(at, size), options).payload.size();
    sum += entry_bytes;
  }
  return sum;
}

std::vector<ByteRange> choose_windows(std::uint64_t bytes) {
  if (bytes <= window_count * window_bytes) {
    return {{0, bytes}};
  }
  std::vector<ByteRange> windows;
  for (std::uint64_t i = 0; i < window_count; ++i) {
    windows.push_back({(bytes - window_bytes) / (window_count - 1) * i, window_bytes});
  }
  return windows;
}

/// How the window must be coded: the smallest block size that keeps the promise, or a chain.
struct BlockChoice {
  std::uint8_t block_log2 = 18;
  bool chained = false;
};

BlockChoice choose_for_window(const EncodePlan& plan, base::ByteView window, std::uint64_t offset) {
  const std::uint64_t whole = zstd_size(window);
  const std::uint64_t limit = whole + whole / 200;
  BlockChoice choice{plan.block_log2, false};
  for (unsigned log2 = plan.block_log2; log2 <= block_log2_max; ++log2) {
    choice.block_log2 = static_cast<std::uint8_t>(log2);
    const std::uint64_t block = std::uint64_t{1} << log2;
    // The cheap bound first: the real coding of a block is never larger than its zstd -3.
    if (blocked_zstd_size(window, block) <= limit ||
        blocked_size(plan, window, offset, block, plan.block_options) <= limit) {
      return choice;
    }
    if (block >= window.size()) {
      return choice;  // one block already: nothing is left to gain but a chain of one
    }
  }
  choice.chained = true;
  return choice;
}

Result<void> choose_blocks(base::ReadableBytes& target, EncodePlan& plan) {
  for (const ByteRange range : choose_windows(target.size())) {
    base::Bytes window(static_cast<std::size_t>(range.size));
    HFD_TRY_VOID(target.read_at(range.offset, window));
    if (base::is_zero(window)) {
      continue;
    }
    const BlockChoice choice = choose_for_window(plan, window, range.offset);
    plan.block_log2 = std::max(plan.block_log2, choice.block_log2);
    plan.chained = plan.chained || choice.chained;
  }
  return {};
}

std::uint64_t literal_bytes(const SourceMap& map, std::uint64_t target_bytes) {
  std::uint64_t mapped = 0;
  for (const Extent& extent : map.extents) {
    mapped += extent.use == ExtentUse::mapped ? extent.target.size : 0;
  }
  return target_bytes - mapped;
}

}  // namespace

Result<base::Bytes> read_sources(const BlockLayout& layout,
                                 const std::vector<SourceFile>& sources) {
  base::Bytes bytes(static_cast<std::size_t>(layout.source_bytes));
  std::size_t at = 0;
  for (const SourceSpan& span : layout.sources) {
    const auto size = static_cast<std::size_t>(span.range.size);
    HFD_TRY_VOID(sources[span.source].reader->read_at(span.range.offset,
                                                      base::ByteSpan(bytes).subspan(at, size)));
    at += size;
  }
  return bytes;
}

Result<EncodePlan> plan_encode(base::ReadableBytes& target, const std::vector<SourceFile>& sources,
                               const EncodeOptions& options) {
  EncodePlan plan;
  plan.block_log2 = static_cast<std::uint8_t>(std::countr_zero(options.block_bytes));
  const auto asked_log2 = plan.block_log2;
  HFD_TRY(plan.map, map_sources(target, sources, options.target_path, options.block_bytes));
  plan.map.extents.resize(std::min<std::size_t>(plan.map.extents.size(), extents_max));
  if (target.size() == 0) {
    return plan;
  }
  HFD_TRY(const std::vector<Sample> samples,
          read_samples(target, sources, plan.map, options.block_bytes));
  plan.tables = choose_tables(samples, options.block_bytes);
  plan.block_options.try_harder = literal_bytes(plan.map, target.size()) <= try_harder_bytes;
  if (mostly_raw(samples, plan.tables)) {
    HFD_TRY_VOID(choose_blocks(target, plan));
  }
  if (plan.block_log2 != asked_log2) {  // text extents must not cross the new blocks
    HFD_TRY(plan.map,
            map_sources(target, sources, options.target_path, std::uint64_t{1} << plan.block_log2));
  }
  return plan;
}

}  // namespace hfd::codec
