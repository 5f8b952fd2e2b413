// SPDX-License-Identifier: Apache-2.0
#include "codec/extent_map.hpp"

#include <algorithm>

namespace hfd::codec {
namespace {

class LayoutBuilder {
 public:
  explicit LayoutBuilder(bool use_sources) : use_sources_(use_sources) {}

  /// Bytes [at, at + size) of the block without a source.
  void add_literal(WordKind kind, std::uint64_t at, std::uint64_t size) {
    add(group_literal + static_cast<unsigned>(kind), at, size, 0);
  }

  /// The part of an extent that lies in the block. `skipped` of its bytes stand before the block.
  void add_extent(const Extent& extent, std::uint64_t skipped, std::uint64_t at,
                  std::uint64_t size) {
    const bool mapped = use_sources_ && extent.use == ExtentUse::mapped;
    if (use_sources_ && extent.use == ExtentUse::text) {
      add_source(extent.source, extent.from);
      add(group_text, at, size, extent.from.size);
      return;
    }
    if (mapped) {
      add_source(extent.source, {extent.from.offset + skipped, size});
    }
    // Words cut by a block's edge are coded as bytes: a block never needs its neighbour.
    const std::uint64_t width = word_bytes(extent.kind);
    const std::uint64_t head = std::min(size, (width - skipped % width) % width);
    const std::uint64_t body = (size - head) / width * width;
    const unsigned first_group = mapped ? 0 : group_literal;
    const auto byte_group = first_group + static_cast<unsigned>(WordKind::w1);
    const auto word_group = first_group + static_cast<unsigned>(extent.kind);
    add(byte_group, at, head, mapped ? head : 0);
    add(word_group, at + head, body, mapped ? body : 0);
    add(byte_group, at + head + body, size - head - body, mapped ? size - head - body : 0);
  }

  BlockLayout take() { return std::move(layout_); }

 private:
  void add_source(std::uint32_t source, ByteRange range) {
    layout_.source_bytes += range.size;
    if (!layout_.sources.empty()) {
      SourceSpan& last = layout_.sources.back();
      if (last.source == source && last.range.end() == range.offset) {
        last.range.size += range.size;
        return;
      }
    }
    layout_.sources.push_back({source, range});
  }

  void add(unsigned group, std::uint64_t at, std::uint64_t size, std::uint64_t source_size) {
    if (size == 0) {
      source_used_ += source_size;  // an empty text piece may still own source bytes
      return;
    }
    const auto bytes = static_cast<std::uint32_t>(size);
    layout_.group_bytes.at(group) += bytes;
    if (!layout_.pieces.empty() && group != group_text) {
      Piece& last = layout_.pieces.back();
      if (last.group == group) {  // neighbours in the block are neighbours in the source bytes too
        last.bytes += bytes;
        last.source_bytes += static_cast<std::uint32_t>(source_size);
        source_used_ += source_size;
        return;
      }
    }
    layout_.pieces.push_back(
        {static_cast<std::uint32_t>(at), bytes, static_cast<std::uint32_t>(source_used_),
         static_cast<std::uint32_t>(source_size), static_cast<std::uint8_t>(group)});
    source_used_ += source_size;
  }

  bool use_sources_;
  std::uint64_t source_used_ = 0;
  BlockLayout layout_;
};

}  // namespace

BlockLayout block_layout(const ExtentMap& extents, ByteRange target, bool use_sources) {
  LayoutBuilder builder(use_sources);
  auto extent = std::upper_bound(
      extents.begin(), extents.end(), target.offset,
      [](std::uint64_t offset, const Extent& e) { return offset < e.target.end(); });
  std::uint64_t at = target.offset;
  while (at < target.end()) {
    if (extent == extents.end() || extent->target.offset >= target.end()) {
      builder.add_literal(WordKind::w1, at - target.offset, target.end() - at);
      break;
    }
    if (extent->target.offset > at) {
      builder.add_literal(WordKind::w1, at - target.offset, extent->target.offset - at);
      at = extent->target.offset;
    }
    const std::uint64_t end = std::min(extent->target.end(), target.end());
    builder.add_extent(*extent, at - extent->target.offset, at - target.offset, end - at);
    at = end;
    ++extent;
  }
  return builder.take();
}

void merge_extents(ExtentMap& extents) {
  ExtentMap merged;
  merged.reserve(extents.size());
  for (const Extent& extent : extents) {
    if (extent.target.size == 0) {
      continue;
    }
    if (!merged.empty()) {
      Extent& last = merged.back();
      const bool joins = last.use == extent.use && last.kind == extent.kind &&
                         last.use != ExtentUse::text && last.target.end() == extent.target.offset &&
                         last.target.size % word_bytes(last.kind) == 0;
      const bool same_place =
          extent.use == ExtentUse::literal ||
          (last.source == extent.source && last.from.end() == extent.from.offset);
      if (joins && same_place) {
        last.target.size += extent.target.size;
        last.from.size += extent.from.size;
        continue;
      }
    }
    merged.push_back(extent);
  }
  extents = std::move(merged);
}

}  // namespace hfd::codec
