// SPDX-License-Identifier: Apache-2.0
// Element types of safetensors 0.8.0: width and, for floats, where the exponent stands (the delta
// codec's context). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hfd::format {

enum class DType : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

/// The name used in headers ("BF16"), and back; nothing for an unknown one.
std::string_view dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
/// Bits an element takes in the file.
unsigned dtype_bits(DType dtype);
/// Bytes of the word that the delta codec compares: 1, 2, 4 or 8 (sub-byte types count as bytes,
/// C64 as two 4-byte words).
unsigned dtype_word_bytes(DType dtype);

}  // namespace hfd::format
