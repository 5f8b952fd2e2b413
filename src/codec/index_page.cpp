// SPDX-License-Identifier: Apache-2.0
#include "codec/index_page.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "codec/zstd_frame.hpp"

namespace hfd::codec {
namespace {

constexpr std::uint8_t chained_bit = 0x80;
constexpr int page_level = 9;
/// A block's entry takes at most a mode byte and three varints.
constexpr std::uint64_t entry_bytes_max = 31;

Error damaged(std::string what) { return Error{ErrorCode::corrupt, std::move(what)}; }

bool has_payload(BlockMode mode) { return mode != BlockMode::same && mode != BlockMode::zero; }

Result<base::Bytes> take_meta(base::ByteReader& reader, std::uint64_t blocks) {
  HFD_TRY(const std::uint64_t raw_bytes, reader.varint());
  HFD_TRY(const std::uint64_t stored_bytes, reader.varint());
  if (raw_bytes > blocks * entry_bytes_max || stored_bytes > raw_bytes) {
    return damaged("an index page has an impossible size");
  }
  HFD_TRY(const base::ByteView stored, reader.take(stored_bytes));
  base::Bytes raw(static_cast<std::size_t>(raw_bytes));
  if (stored_bytes == raw_bytes) {
    std::copy(stored.begin(), stored.end(), raw.begin());
  } else {
    HFD_TRY_VOID(zstd_decompress(stored, {}, raw));
  }
  return raw;
}

Result<void> take_modes(base::ByteReader& meta, std::vector<BlockEntry>& entries) {
  for (BlockEntry& entry : entries) {
    HFD_TRY(const auto byte, meta.integer<std::uint8_t>());
    entry.chained = (byte & chained_bit) != 0;
    const unsigned mode = byte & ~unsigned{chained_bit};
    if (mode > static_cast<unsigned>(BlockMode::zero) ||
        (entry.chained && mode != static_cast<unsigned>(BlockMode::raw))) {
      return damaged("an index page has an unknown block mode");
    }
    entry.mode = static_cast<BlockMode>(mode);
  }
  return {};
}

Result<void> take_lengths(base::ByteReader& meta, std::vector<BlockEntry>& entries,
                          const DirectoryView& directory, std::uint32_t page) {
  std::uint64_t left = directory.data().pages[page].payload_bytes;
  std::uint64_t offset = directory.payload_offset(page);
  std::uint64_t block = std::uint64_t{page} * directory.data().page_blocks;
  for (BlockEntry& entry : entries) {
    if (has_payload(entry.mode)) {
      HFD_TRY(entry.payload_bytes, meta.varint());
    }
    if (entry.chained) {
      HFD_TRY(entry.back_blocks, meta.varint());
      HFD_TRY(entry.back_bytes, meta.varint());
    }
    if (entry.payload_bytes > left || entry.back_blocks > block || entry.back_bytes > offset) {
      return damaged("an index page has impossible lengths");
    }
    left -= entry.payload_bytes;
    offset += entry.payload_bytes;
    ++block;
  }
  if (left != 0 || meta.left() != 0) {
    return damaged("an index page has bytes left over");
  }
  return {};
}

Result<void> check_same(const DirectoryView& directory, std::uint64_t block) {
  const ByteRange range = directory.data().block_range(block);
  const BlockLayout layout = block_layout(directory.data().extents, range, true);
  const bool mapped = std::all_of(layout.pieces.begin(), layout.pieces.end(),
                                  [](const Piece& piece) { return piece.group < group_literal; });
  if (!mapped || layout.source_bytes != range.size) {
    return damaged("a block that equals its source has none");
  }
  return {};
}

}  // namespace

base::Bytes write_page(const std::vector<BlockEntry>& entries, unsigned hash_bytes) {
  base::Bytes meta;
  if (std::all_of(entries.begin(), entries.end(),
                  [](const BlockEntry& entry) { return entry.mode == BlockMode::zero; })) {
    return meta;
  }
  for (const BlockEntry& entry : entries) {
    const auto mode = static_cast<std::uint8_t>(entry.mode);
    meta.push_back(static_cast<std::byte>(entry.chained ? mode | chained_bit : mode));
  }
  for (const BlockEntry& entry : entries) {
    if (has_payload(entry.mode)) {
      base::append_varint(meta, entry.payload_bytes);
    }
    if (entry.chained) {
      base::append_varint(meta, entry.back_blocks);
      base::append_varint(meta, entry.back_bytes);
    }
  }
  base::Bytes packed;
  zstd_compress(meta, {}, page_level, packed);
  const bool pack = packed.size() < meta.size();
  base::Bytes page;
  base::append_varint(page, meta.size());
  base::append_varint(page, pack ? packed.size() : meta.size());
  base::append(page, pack ? packed : meta);
  for (const BlockEntry& entry : entries) {
    if (entry.mode != BlockMode::zero) {
      base::append(page, base::ByteView(entry.hash).first(hash_bytes));
    }
  }
  return page;
}

Result<std::shared_ptr<const IndexPage>> IndexPage::parse(
    std::shared_ptr<const DeltaDirectory> directory, std::uint32_t page, base::ByteView stored) {
  auto view = std::static_pointer_cast<const DirectoryView>(std::move(directory));
  const DirectoryData& data = view->data();
  HFD_CHECK(page < data.pages.size());
  const std::uint64_t first = std::uint64_t{page} * data.page_blocks;
  const std::uint64_t count = std::min<std::uint64_t>(data.page_blocks, data.block_count() - first);
  if (stored.empty() && data.pages[page].stored_bytes == 0 && data.pages[page].payload_bytes == 0) {
    BlockEntry zero;
    zero.mode = BlockMode::zero;
    return std::shared_ptr<const IndexPage>(
        std::make_shared<PageView>(std::move(view), page, std::vector<BlockEntry>(count, zero)));
  }
  if (stored.size() != data.pages[page].stored_bytes ||
      page_hash(stored) != data.pages[page].hash) {
    return damaged("an index page's checksum differs");
  }
  base::ByteReader reader(stored);
  HFD_TRY(const base::Bytes meta_bytes, take_meta(reader, count));
  base::ByteReader meta(meta_bytes);
  std::vector<BlockEntry> entries(static_cast<std::size_t>(count));
  HFD_TRY_VOID(take_modes(meta, entries));
  HFD_TRY_VOID(take_lengths(meta, entries, *view, page));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].mode == BlockMode::zero) {
      continue;
    }
    HFD_TRY(const base::ByteView hash, reader.take(data.hash_bytes));
    std::copy(hash.begin(), hash.end(), entries[i].hash.begin());
    if (entries[i].mode == BlockMode::same) {
      HFD_TRY_VOID(check_same(*view, first + i));
    }
  }
  if (reader.left() != 0) {
    return damaged("an index page has bytes left over");
  }
  return std::shared_ptr<const IndexPage>(
      std::make_shared<PageView>(std::move(view), page, std::move(entries)));
}

PageView::PageView(std::shared_ptr<const DirectoryView> directory, std::uint32_t page,
                   std::vector<BlockEntry> entries)
    : directory_(std::move(directory)),
      first_block_(std::uint64_t{page} * directory_->data().page_blocks),
      entries_(std::move(entries)) {
  std::uint64_t offset = directory_->payload_offset(page);
  payload_offsets_.reserve(entries_.size());
  for (const BlockEntry& entry : entries_) {
    payload_offsets_.push_back(offset);
    offset += entry.payload_bytes;
  }
}

BlockPlan PageView::plan(std::uint64_t block) const {
  HFD_CHECK(block >= first_block_ && block - first_block_ < entries_.size());
  const auto i = static_cast<std::size_t>(block - first_block_);
  const BlockEntry& entry = entries_[i];
  const DirectoryData& data = directory_->data();
  BlockPlan plan;
  plan.block = block;
  plan.target = data.block_range(block);
  plan.mode = entry.mode;
  plan.hash = entry.hash;
  plan.payload = {payload_offsets_[i] - entry.back_bytes, entry.back_bytes + entry.payload_bytes};
  plan.chained = entry.chained;
  plan.skip_bytes = entry.back_blocks << data.block_log2;
  if (entry.mode != BlockMode::raw && entry.mode != BlockMode::zero) {
    plan.sources = block_layout(data.extents, plan.target, true).sources;
  }
  return plan;
}

ModeCounts PageView::mode_counts() const {
  ModeCounts counts;
  for (const BlockEntry& entry : entries_) {
    switch (entry.mode) {
      case BlockMode::same: ++counts.same; break;
      case BlockMode::sparse: ++counts.sparse; break;
      case BlockMode::dense: ++counts.dense; break;
      case BlockMode::raw: ++counts.raw; break;
      case BlockMode::zero: ++counts.zero; break;
    }
  }
  return counts;
}

}  // namespace hfd::codec
