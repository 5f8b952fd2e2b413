// SPDX-License-Identifier: Apache-2.0
// What the words of a range are: how wide, and where the exponent stands that predicts how likely a
// word changes. Only steers compression: bytes are compared as integers, never as numbers. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "format/dtype.hpp"

namespace hfd::codec {

/// Stored in objects; numbers never change their meaning. The first four have no context.
enum class WordKind : std::uint8_t {
  w1 = 0,
  w2 = 1,
  w4 = 2,
  w8 = 3,
  bf16 = 4,
  f16 = 5,
  f32 = 6,
  f64 = 7,
  e4m3 = 8,
  e5m2 = 9,
};
inline constexpr unsigned word_kind_count = 10;

/// 1, 2, 4 or 8.
unsigned word_bytes(WordKind kind);
/// The key of a word is (word >> shift) & mask, at most 255. Kinds without context have mask 0.
struct KeyBits {
  unsigned shift = 0;
  std::uint32_t mask = 0;
};
KeyBits key_bits(WordKind kind);
WordKind word_kind_of(format::DType dtype);
/// The kind without context that has this width.
WordKind plain_kind(unsigned width);

/// Most classes that the sparse mode may use.
inline constexpr unsigned class_count_max = 16;

/// Splits keys into classes: class c holds the keys from starts[c] up to the next start. What
/// typical blocks of this file need (`gap_bits`, `count_bits`) makes their headers short.
struct ClassTable {
  std::vector<std::uint8_t> starts{0};  ///< ascending, starts[0] == 0
  std::vector<std::uint8_t> gap_bits{0};
  std::vector<std::uint8_t> count_bits{0};

  unsigned count() const { return static_cast<unsigned>(starts.size()); }
  /// Class of each of 256 keys.
  std::array<std::uint8_t, 256> lookup() const;
};

/// One table for each kind.
using ClassTables = std::array<ClassTable, word_kind_count>;

}  // namespace hfd::codec
