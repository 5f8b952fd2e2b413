// SPDX-License-Identifier: Apache-2.0
#include "codec/directory.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "codec/rice.hpp"
#include "codec/zstd_frame.hpp"

namespace hfd::codec {
namespace {

// The footer: magic 7, version 1, target sha256 32, check 8, directory stored 4, directory raw 4,
// object size 8.
constexpr std::string_view magic = "hfdelta";
constexpr std::size_t version_at = 7;
constexpr std::size_t sha256_at = 8;
constexpr std::size_t check_at = 40;
constexpr std::size_t stored_at = 48;
constexpr std::size_t raw_at = 52;
constexpr std::size_t object_at = 56;
constexpr int directory_level = 9;

Error damaged(std::string what) { return Error{ErrorCode::corrupt, std::move(what)}; }

/// First 8 bytes of xxh3-128 over directory and footer, the check field taken as zero.
std::array<std::byte, 8> check_of(base::ByteView stored) {
  base::Bytes copy(stored.begin(), stored.end());
  std::fill_n(copy.end() - static_cast<std::ptrdiff_t>(footer_bytes - check_at), 8, std::byte{0});
  const base::Xxh128 hash = base::xxh3_128(copy);
  std::array<std::byte, 8> check{};
  std::copy_n(hash.begin(), check.size(), check.begin());
  return check;
}

std::uint64_t fold(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63U);
}
std::int64_t unfold(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1U) ^ (std::uint64_t{0} - (value & 1U)));
}

void put_tables(const DirectoryData& data, base::Bytes& out) {
  // Kinds whose table is the single default class are left out.
  std::uint64_t present = 0;
  for (unsigned kind = 0; kind < word_kind_count; ++kind) {
    const ClassTable& table = data.tables.at(kind);
    if (table.count() > 1 || table.gap_bits[0] != 0 || table.count_bits[0] != 0) {
      present |= std::uint64_t{1} << kind;
    }
  }
  base::append_varint(out, present);
  for (unsigned kind = 0; kind < word_kind_count; ++kind) {
    if ((present >> kind & 1U) == 0) {
      continue;
    }
    const ClassTable& table = data.tables.at(kind);
    out.push_back(static_cast<std::byte>(table.count()));
    for (unsigned c = 0; c < table.count(); ++c) {
      out.push_back(static_cast<std::byte>(table.starts[c]));
      out.push_back(static_cast<std::byte>(table.gap_bits[c]));
      out.push_back(static_cast<std::byte>(table.count_bits[c]));
    }
  }
}

Result<void> take_tables(base::ByteReader& reader, DirectoryData& data) {
  HFD_TRY(const std::uint64_t present, reader.varint());
  if (present >> word_kind_count != 0) {
    return damaged("the directory has a class table of an unknown kind");
  }
  for (unsigned kind = 0; kind < word_kind_count; ++kind) {
    if ((present >> kind & 1U) == 0) {
      continue;
    }
    ClassTable table{{}, {}, {}};
    HFD_TRY(const auto count, reader.integer<std::uint8_t>());
    if (count == 0 || count > class_count_max) {
      return damaged("the directory has an impossible number of classes");
    }
    for (unsigned c = 0; c < count; ++c) {
      HFD_TRY(const auto start, reader.integer<std::uint8_t>());
      HFD_TRY(const auto gap_bits, reader.integer<std::uint8_t>());
      HFD_TRY(const auto count_bits, reader.integer<std::uint8_t>());
      const bool ascending = c == 0 ? start == 0 : start > table.starts.back();
      if (!ascending || gap_bits > rice_k_max || count_bits > rice_k_max) {
        return damaged("the directory has a bad class table");
      }
      table.starts.push_back(start);
      table.gap_bits.push_back(gap_bits);
      table.count_bits.push_back(count_bits);
    }
    data.tables.at(kind) = std::move(table);
  }
  return {};
}

void put_extents(const DirectoryData& data, base::Bytes& out) {
  base::append_varint(out, data.extents.size());
  std::vector<std::uint64_t> source_ends(data.sources.size(), 0);
  std::uint64_t end = 0;
  for (const Extent& extent : data.extents) {
    out.push_back(static_cast<std::byte>(static_cast<unsigned>(extent.use) << 4U |
                                         static_cast<unsigned>(extent.kind)));
    base::append_varint(out, extent.target.offset - end);
    base::append_varint(out, extent.target.size);
    end = extent.target.end();
    if (extent.use == ExtentUse::literal) {
      continue;
    }
    base::append_varint(out, extent.source);
    std::uint64_t& source_end = source_ends[extent.source];
    base::append_varint(out, fold(static_cast<std::int64_t>(extent.from.offset) -
                                  static_cast<std::int64_t>(source_end)));
    source_end = extent.from.end();
    if (extent.use == ExtentUse::text) {
      base::append_varint(out, extent.from.size);
    }
  }
}

Result<void> take_source_range(base::ByteReader& reader, const DirectoryData& data,
                               std::vector<std::uint64_t>& source_ends, Extent& extent) {
  HFD_TRY(const std::uint64_t source, reader.varint());
  if (source >= data.sources.size()) {
    return damaged("an extent names a source that is not there");
  }
  extent.source = static_cast<std::uint32_t>(source);
  HFD_TRY(const std::uint64_t moved, reader.varint());
  std::uint64_t& source_end = source_ends[extent.source];
  // Wraps for bad values; the check against the source's size below catches them.
  extent.from.offset = source_end + static_cast<std::uint64_t>(unfold(moved));
  extent.from.size = extent.target.size;
  if (extent.use == ExtentUse::text) {
    HFD_TRY(extent.from.size, reader.varint());
    if (extent.from.size > text_source_bytes_max) {
      return damaged("a text extent has too large a source");
    }
  }
  if (!extent.from.within(data.sources[extent.source].bytes)) {
    return damaged("an extent leaves its source");
  }
  source_end = extent.from.end();
  return {};
}

/// Checks what the layout of blocks relies on: see ExtentMap.
Result<void> check_text(const DirectoryData& data, const Extent& extent,
                        std::uint64_t& text_block) {
  const std::uint64_t block = extent.target.offset >> data.block_log2;
  if (extent.target.size == 0 || (extent.target.end() - 1) >> data.block_log2 != block) {
    return damaged("a text extent crosses a block");
  }
  if (block == text_block) {
    return damaged("a block has two text extents");
  }
  text_block = block;
  return {};
}

Result<void> take_extents(base::ByteReader& reader, DirectoryData& data) {
  HFD_TRY(const std::uint64_t count, reader.varint());
  if (count > reader.left() / 3 || count > extents_max) {  // an extent takes at least 3 bytes
    return damaged("the directory claims more extents than it holds");
  }
  data.extents.reserve(static_cast<std::size_t>(count));
  std::vector<std::uint64_t> source_ends(data.sources.size(), 0);
  std::uint64_t end = 0;
  std::uint64_t text_block = UINT64_MAX;
  for (std::uint64_t i = 0; i < count; ++i) {
    HFD_TRY(const auto head, reader.integer<std::uint8_t>());
    Extent extent;
    if (head >> 4U > static_cast<unsigned>(ExtentUse::text) || (head & 15U) >= word_kind_count) {
      return damaged("an extent is of an unknown kind");
    }
    extent.use = static_cast<ExtentUse>(head >> 4U);
    extent.kind = static_cast<WordKind>(head & 15U);
    HFD_TRY(const std::uint64_t gap, reader.varint());
    HFD_TRY(extent.target.size, reader.varint());
    if (gap > data.target_bytes - end || extent.target.size == 0) {
      return damaged("an extent leaves the target");
    }
    extent.target.offset = end + gap;
    if (!extent.target.within(data.target_bytes)) {
      return damaged("an extent leaves the target");
    }
    end = extent.target.end();
    if (extent.use != ExtentUse::literal) {
      HFD_TRY_VOID(take_source_range(reader, data, source_ends, extent));
    }
    if (extent.use == ExtentUse::text) {
      HFD_TRY_VOID(check_text(data, extent, text_block));
    }
    data.extents.push_back(extent);
  }
  return {};
}

Result<void> take_sources(base::ByteReader& reader, DirectoryData& data) {
  HFD_TRY(const std::uint64_t count, reader.varint());
  if (count > reader.left() / 33) {
    return damaged("the directory claims more sources than it holds");
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    SourceInfo source;
    HFD_TRY(const base::ByteView sha256, reader.take(32));
    std::copy(sha256.begin(), sha256.end(), source.sha256.bytes.begin());
    HFD_TRY(source.bytes, reader.varint());
    if (source.bytes > target_bytes_max) {
      return damaged("a source is impossibly large");
    }
    data.sources.push_back(source);
  }
  return {};
}

Result<void> take_pages(base::ByteReader& reader, DirectoryData& data) {
  const std::uint64_t blocks = data.block_count();
  const std::uint64_t count = (blocks + data.page_blocks - 1) / data.page_blocks;
  if (count > reader.left() / 2 || count > pages_max) {
    return damaged("the directory holds too few pages");
  }
  data.pages.resize(static_cast<std::size_t>(count));
  for (PageEntry& page : data.pages) {
    HFD_TRY(page.stored_bytes, reader.varint());
    HFD_TRY(page.payload_bytes, reader.varint());
    if (page.stored_bytes > target_bytes_max || page.payload_bytes > 2 * target_bytes_max) {
      return damaged("a page is impossibly large");
    }
    if (page.stored_bytes > 0) {
      HFD_TRY(const base::ByteView hash, reader.take(page.hash.size()));
      std::copy(hash.begin(), hash.end(), page.hash.begin());
    }
  }
  return {};
}

base::Bytes raw_directory(const DirectoryData& data) {
  base::Bytes raw;
  base::append_varint(raw, data.target_bytes);
  raw.push_back(static_cast<std::byte>(data.block_log2));
  raw.push_back(static_cast<std::byte>(data.hash_bytes));
  base::append_varint(raw, data.page_blocks);
  base::append_varint(raw, data.changed_elements);
  base::append_varint(raw, data.total_elements);
  base::append_varint(raw, data.sources.size());
  for (const SourceInfo& source : data.sources) {
    base::append(raw, source.sha256.bytes);
    base::append_varint(raw, source.bytes);
  }
  put_tables(data, raw);
  put_extents(data, raw);
  for (const PageEntry& page : data.pages) {
    base::append_varint(raw, page.stored_bytes);
    base::append_varint(raw, page.payload_bytes);
    if (page.stored_bytes > 0) {
      base::append(raw, page.hash);
    }
  }
  return raw;
}

Result<DirectoryData> take_directory(base::ByteView raw, const ContentHash& target) {
  DirectoryData data;
  data.target_sha256 = target;
  base::ByteReader reader(raw);
  HFD_TRY(data.target_bytes, reader.varint());
  HFD_TRY(data.block_log2, reader.integer<std::uint8_t>());
  HFD_TRY(data.hash_bytes, reader.integer<std::uint8_t>());
  HFD_TRY(const std::uint64_t page_blocks, reader.varint());
  if (data.target_bytes > target_bytes_max || data.block_log2 < block_log2_min ||
      data.block_log2 > block_log2_max || data.hash_bytes < 8 || data.hash_bytes > 16 ||
      page_blocks == 0 || page_blocks > 65536) {
    return damaged("the directory has impossible sizes");
  }
  data.page_blocks = static_cast<std::uint32_t>(page_blocks);
  HFD_TRY(data.changed_elements, reader.varint());
  HFD_TRY(data.total_elements, reader.varint());
  HFD_TRY_VOID(take_sources(reader, data));
  HFD_TRY_VOID(take_tables(reader, data));
  HFD_TRY_VOID(take_extents(reader, data));
  HFD_TRY_VOID(take_pages(reader, data));
  if (reader.left() != 0) {
    return damaged("the directory has bytes left over");
  }
  return data;
}

}  // namespace

PageHash page_hash(base::ByteView stored) {
  const base::Xxh128 hash = base::xxh3_128(stored);
  PageHash start{};
  std::copy_n(hash.begin(), start.size(), start.begin());
  return start;
}

std::uint64_t DirectoryData::block_count() const {
  return (target_bytes + (std::uint64_t{1} << block_log2) - 1) >> block_log2;
}

ByteRange DirectoryData::block_range(std::uint64_t block) const {
  const std::uint64_t offset = block << block_log2;
  return {offset, std::min(std::uint64_t{1} << block_log2, target_bytes - offset)};
}

base::Bytes write_directory(const DirectoryData& data, std::uint64_t bytes_before) {
  const base::Bytes raw = raw_directory(data);
  base::Bytes stored;
  zstd_compress(raw, {}, directory_level, stored);
  if (stored.size() >= raw.size()) {
    stored = raw;
  }
  const auto directory_bytes = static_cast<std::uint32_t>(stored.size());
  stored.resize(stored.size() + footer_bytes);
  std::byte* footer = stored.data() + directory_bytes;
  std::fill_n(footer, footer_bytes, std::byte{0});
  std::copy_n(base::as_bytes(magic).begin(), magic.size(), footer);
  footer[version_at] = static_cast<std::byte>(format_version_now);
  std::copy(data.target_sha256.bytes.begin(), data.target_sha256.bytes.end(), footer + sha256_at);
  base::store_le(footer + stored_at, directory_bytes);
  base::store_le(footer + raw_at, static_cast<std::uint32_t>(raw.size()));
  base::store_le(footer + object_at, bytes_before + stored.size());
  const std::array<std::byte, 8> check = check_of(stored);
  std::copy(check.begin(), check.end(), footer + check_at);
  return stored;
}

Result<ByteRange> DeltaDirectory::directory_range(base::ByteView footer,
                                                  std::uint64_t object_bytes) {
  if (footer.size() != footer_bytes || object_bytes < footer_bytes ||
      base::as_text(footer.first(magic.size())) != magic) {
    return damaged("not a delta object");
  }
  if (footer[version_at] != static_cast<std::byte>(format_version_now)) {
    return Error{ErrorCode::unsupported, "a delta object of another format version", "",
                 "update hfdeltafs"};
  }
  const std::uint64_t stored = base::load_le<std::uint32_t>(footer.data() + stored_at);
  const std::uint64_t raw = base::load_le<std::uint32_t>(footer.data() + raw_at);
  if (base::load_le<std::uint64_t>(footer.data() + object_at) != object_bytes) {
    return damaged("the delta object is shorter or longer than its footer says");
  }
  if (stored > object_bytes - footer_bytes || raw > directory_raw_bytes_max || stored > raw) {
    return damaged("the delta object's directory has an impossible size");
  }
  return ByteRange{object_bytes - footer_bytes - stored, stored + footer_bytes};
}

Result<std::shared_ptr<const DeltaDirectory>> DeltaDirectory::parse(base::ByteView stored,
                                                                    std::uint64_t object_bytes) {
  if (stored.size() < footer_bytes) {
    return damaged("not a delta object");
  }
  const base::ByteView footer = stored.last(footer_bytes);
  HFD_TRY(const ByteRange range, directory_range(footer, object_bytes));
  if (range.size != stored.size()) {
    return damaged("the directory is cut");
  }
  const std::array<std::byte, 8> check = check_of(stored);
  if (!std::equal(check.begin(), check.end(), footer.data() + check_at)) {
    return damaged("the directory's checksum differs");
  }
  ContentHash target;
  std::copy_n(footer.data() + sha256_at, target.bytes.size(), target.bytes.begin());
  const base::ByteView packed = stored.first(stored.size() - footer_bytes);
  base::Bytes raw(base::load_le<std::uint32_t>(footer.data() + raw_at));
  if (packed.size() == raw.size()) {
    std::copy(packed.begin(), packed.end(), raw.begin());
  } else {
    HFD_TRY_VOID(zstd_decompress(packed, {}, raw));
  }
  HFD_TRY(DirectoryData data, take_directory(raw, target));
  // Payloads, then pages, must fill exactly what stands before the directory.
  std::uint64_t left = range.offset;
  for (const PageEntry& page : data.pages) {
    if (page.payload_bytes > left || page.stored_bytes > left - page.payload_bytes) {
      return damaged("pages and payloads do not fit into the object");
    }
    left -= page.payload_bytes + page.stored_bytes;
  }
  if (left != 0) {
    return damaged("the object has bytes that belong to nothing");
  }
  return std::shared_ptr<const DeltaDirectory>(
      std::make_shared<DirectoryView>(std::move(data), object_bytes));
}

DirectoryView::DirectoryView(DirectoryData data, std::uint64_t object_bytes)
    : data_(std::move(data)), object_bytes_(object_bytes) {
  payload_offsets_.reserve(data_.pages.size());
  page_offsets_.reserve(data_.pages.size());
  for (const PageEntry& page : data_.pages) {
    payload_offsets_.push_back(payload_bytes_);
    payload_bytes_ += page.payload_bytes;
  }
  std::uint64_t offset = payload_bytes_;
  for (const PageEntry& page : data_.pages) {
    page_offsets_.push_back(offset);
    offset += page.stored_bytes;
  }
}

ByteRange DirectoryView::page_range(std::uint32_t page) const {
  HFD_CHECK(page < data_.pages.size());
  return {page_offsets_[page], data_.pages[page].stored_bytes};
}

}  // namespace hfd::codec
