// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "codec/source_map.hpp"

namespace hfd::codec {
namespace {

// What is compared to tell that a block stands at the same place: a few short windows. A wrong
// guess only costs the sizes that raw coding then saves.
constexpr std::uint64_t window_bytes = 64;
constexpr unsigned windows = 5;
// Fewer equal windows than this and a prefix finds more: something was inserted within the block.
constexpr unsigned windows_needed = 3;

/// How many windows of `block` equal the source's bytes `shift` away.
Result<unsigned> agreement(base::ReadableBytes& target, base::ReadableBytes& source,
                           ByteRange block, std::int64_t shift) {
  const std::uint64_t from = block.offset + static_cast<std::uint64_t>(shift);
  if (block.size == 0 || !ByteRange{from, block.size}.within(source.size())) {
    return 0U;
  }
  const auto size = static_cast<std::size_t>(std::min(window_bytes, block.size));
  std::array<std::byte, window_bytes> now{};
  std::array<std::byte, window_bytes> old{};
  unsigned equal = 0;
  for (unsigned i = 0; i < windows; ++i) {
    const std::uint64_t at = (block.size - size) * i / (windows - 1);
    HFD_TRY_VOID(target.read_at(block.offset + at, base::ByteSpan(now).first(size)));
    HFD_TRY_VOID(source.read_at(from + at, base::ByteSpan(old).first(size)));
    equal += std::memcmp(now.data(), old.data(), size) == 0 ? 1U : 0U;
  }
  return equal;
}

/// The source bytes around the block's place, at most text_source_bytes_max of them.
ByteRange surroundings(ByteRange block, std::uint64_t source_bytes) {
  const std::uint64_t size = std::min(text_source_bytes_max, source_bytes);
  const std::uint64_t middle = block.offset + block.size / 2;
  const std::uint64_t start = middle > size / 2 ? middle - size / 2 : 0;
  return {std::min(start, source_bytes - size), size};
}

Extent mapped(ByteRange target, std::uint32_t source, std::int64_t shift) {
  const std::uint64_t from = target.offset + static_cast<std::uint64_t>(shift);
  return {target, ExtentUse::mapped, WordKind::w1, source, {from, target.size}};
}

}  // namespace

Result<ExtentMap> map_opaque(base::ReadableBytes& target, base::ReadableBytes& source,
                             std::uint32_t source_number, std::uint64_t block_bytes) {
  ExtentMap extents;
  const auto shift_from_end =
      static_cast<std::int64_t>(source.size()) - static_cast<std::int64_t>(target.size());
  for (std::uint64_t offset = 0; offset < target.size(); offset += block_bytes) {
    const ByteRange block{offset, std::min(block_bytes, target.size() - offset)};
    const std::uint64_t common = source.size() > offset ? source.size() - offset : 0;
    const ByteRange head{offset, std::min(block.size, common)};
    HFD_TRY(const unsigned from_start, agreement(target, source, head, 0));
    HFD_TRY(const unsigned from_end, agreement(target, source, block, shift_from_end));
    if (std::max(from_start, from_end) >= windows_needed) {
      // What the source's start has not is literal: an append.
      extents.push_back(from_start >= from_end ? mapped(head, source_number, 0)
                                               : mapped(block, source_number, shift_from_end));
      continue;
    }
    extents.push_back(
        {block, ExtentUse::text, WordKind::w1, source_number, surroundings(block, source.size())});
  }
  return extents;
}

ExtentMap header_text_extents(std::uint64_t header_bytes, std::uint64_t source_header_bytes,
                              std::uint32_t source_number, std::uint64_t block_bytes) {
  ExtentMap extents;
  for (std::uint64_t offset = 0; offset < header_bytes; offset += block_bytes) {
    const ByteRange piece{offset, std::min(block_bytes, header_bytes - offset)};
    extents.push_back({piece, ExtentUse::text, WordKind::w1, source_number,
                       surroundings(piece, source_header_bytes)});
  }
  return extents;
}

}  // namespace hfd::codec
