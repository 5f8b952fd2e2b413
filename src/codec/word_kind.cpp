// SPDX-License-Identifier: Apache-2.0
#include "codec/word_kind.hpp"

namespace hfd::codec {

unsigned word_bytes(WordKind kind) {
  switch (kind) {
    case WordKind::w1:
    case WordKind::e4m3:
    case WordKind::e5m2: return 1;
    case WordKind::w2:
    case WordKind::bf16:
    case WordKind::f16: return 2;
    case WordKind::w4:
    case WordKind::f32: return 4;
    case WordKind::w8:
    case WordKind::f64: return 8;
  }
  return 1;
}

KeyBits key_bits(WordKind kind) {
  switch (kind) {
    case WordKind::bf16: return {7, 0xFF};
    case WordKind::f16: return {10, 0x1F};
    case WordKind::f32: return {23, 0xFF};
    case WordKind::f64: return {55, 0xFF};  // the upper 8 of 11 exponent bits
    case WordKind::e4m3: return {3, 0x0F};
    case WordKind::e5m2: return {2, 0x1F};
    case WordKind::w1:
    case WordKind::w2:
    case WordKind::w4:
    case WordKind::w8: return {0, 0};
  }
  return {0, 0};
}

WordKind word_kind_of(format::DType dtype) {
  using format::DType;
  switch (dtype) {
    case DType::bf16: return WordKind::bf16;
    case DType::f16: return WordKind::f16;
    case DType::f32:
    case DType::c64: return WordKind::f32;
    case DType::f64: return WordKind::f64;
    case DType::f8_e4m3:
    case DType::f8_e4m3fnuz: return WordKind::e4m3;
    case DType::f8_e5m2:
    case DType::f8_e5m2fnuz: return WordKind::e5m2;
    default: return plain_kind(format::dtype_word_bytes(dtype));
  }
}

WordKind plain_kind(unsigned width) {
  switch (width) {
    case 2: return WordKind::w2;
    case 4: return WordKind::w4;
    case 8: return WordKind::w8;
    default: return WordKind::w1;
  }
}

std::array<std::uint8_t, 256> ClassTable::lookup() const {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned key = 0, current = 0; key < 256; ++key) {
    while (current + 1 < count() && starts[current + 1] <= key) {
      ++current;
    }
    classes.at(key) = static_cast<std::uint8_t>(current);
  }
  return classes;
}

}  // namespace hfd::codec
