// SPDX-License-Identifier: Apache-2.0
// Rice codes: value >> k in unary, then the low k bits. A quotient of rice_unary_max or more is
// escaped: that many one bits, then the value in 32 (or, for 8-byte words, 64) bits. Pure.
#pragma once

#include <cstdint>

#include "codec/bit_stream.hpp"

namespace hfd::codec {

inline constexpr unsigned rice_unary_max = 20;

inline void put_rice(BitWriter& writer, std::uint64_t value, unsigned k, bool wide) {
  const std::uint64_t quotient = value >> k;
  if (quotient >= rice_unary_max) {
    writer.put((std::uint64_t{1} << rice_unary_max) - 1, rice_unary_max);
    writer.put(value & 0xFFFFFFFFU, 32);
    if (wide) {
      writer.put(value >> 32U, 32);
    }
    return;
  }
  writer.put_unary(static_cast<unsigned>(quotient));
  writer.put(value, k);
}

inline std::uint64_t take_rice(BitReader& reader, unsigned k, bool wide) {
  const unsigned quotient = reader.take_unary(rice_unary_max);
  if (quotient < rice_unary_max) {
    return (std::uint64_t{quotient} << k) | reader.take(k);
  }
  std::uint64_t value = reader.take(32);
  if (wide) {
    value |= reader.take(32) << 32U;
  }
  return value;
}

inline unsigned rice_bits(std::uint64_t value, unsigned k, bool wide) {
  const std::uint64_t quotient = value >> k;
  if (quotient >= rice_unary_max) {
    return rice_unary_max + (wide ? 64 : 32);
  }
  return static_cast<unsigned>(quotient) + 1 + k;
}

/// Largest k that streams may use: it fits in 5 bits.
inline constexpr unsigned rice_k_max = 31;

}  // namespace hfd::codec
