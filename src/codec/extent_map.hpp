// SPDX-License-Identifier: Apache-2.0
// Which range of the target is coded against which range of a source, and how one block falls into
// groups of equal words. A block may hold parts of hundreds of small tensors: their words are
// gathered into one group a word kind, so that small tensors cost no framing. Used by reader and
// writer alike, so that both see the same groups. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "codec/delta_reader.hpp"
#include "codec/word_kind.hpp"

namespace hfd::codec {

enum class ExtentUse : std::uint8_t {
  mapped = 0,   ///< compared word by word with as many source bytes
  literal = 1,  ///< no source; the kind only says how to split the bytes
  text = 2,     ///< coded with source bytes as the prefix of a zstd frame
};

struct Extent {
  ByteRange target;
  ExtentUse use = ExtentUse::literal;
  WordKind kind = WordKind::w1;
  std::uint32_t source = 0;
  ByteRange from;  ///< in the source; from.size == target.size for `mapped`
};

/// By target offset, without overlaps. Bytes that no extent covers are literal bytes.
/// A block holds at most one text extent, and a text extent lies in one block: this bounds the
/// source bytes that a block may ask for.
using ExtentMap = std::vector<Extent>;
inline constexpr std::uint64_t text_source_bytes_max = 1U << 20U;

/// Groups of a block: the mapped kinds, the literal kinds, the text.
inline constexpr unsigned group_literal = word_kind_count;
inline constexpr unsigned group_text = 2 * word_kind_count;
inline constexpr unsigned group_count = group_text + 1;

/// Neighbouring bytes of a block that belong to one group.
struct Piece {
  std::uint32_t at = 0;  ///< in the block
  std::uint32_t bytes = 0;
  std::uint32_t source_at = 0;  ///< in the block's source bytes
  std::uint32_t source_bytes = 0;
  std::uint8_t group = 0;
};

struct BlockLayout {
  std::vector<Piece> pieces;        ///< in order, covering the block
  std::vector<SourceSpan> sources;  ///< in order of the pieces that use them
  std::uint64_t source_bytes = 0;
  std::array<std::uint32_t, group_count> group_bytes{};
};

/// The layout of the block at `target`. With `use_sources` false every piece is literal.
BlockLayout block_layout(const ExtentMap& extents, ByteRange target, bool use_sources);

/// Joins neighbours that continue each other. Text extents stay as they are.
void merge_extents(ExtentMap& extents);

}  // namespace hfd::codec
