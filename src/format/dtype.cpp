// SPDX-License-Identifier: Apache-2.0
#include "format/dtype.hpp"

#include <array>
#include <cstddef>

namespace hfd::format {
namespace {

struct DTypeFacts {
  std::string_view name;
  std::uint8_t bits;
  std::uint8_t word_bytes;
};

// In the order of DType. Source: safetensors 0.8.0, shared reference delta-formats.md section 4.
constexpr std::array<DTypeFacts, 22> facts = {{
    {"BOOL", 8, 1},    {"F4", 4, 1},          {"F6_E2M3", 6, 1},     {"F6_E3M2", 6, 1},
    {"U8", 8, 1},      {"I8", 8, 1},          {"F8_E5M2", 8, 1},     {"F8_E4M3", 8, 1},
    {"F8_E8M0", 8, 1}, {"F8_E4M3FNUZ", 8, 1}, {"F8_E5M2FNUZ", 8, 1}, {"I16", 16, 2},
    {"U16", 16, 2},    {"F16", 16, 2},        {"BF16", 16, 2},       {"I32", 32, 4},
    {"U32", 32, 4},    {"F32", 32, 4},        {"C64", 64, 4},        {"F64", 64, 8},
    {"I64", 64, 8},    {"U64", 64, 8},
}};

const DTypeFacts& facts_of(DType dtype) { return facts.at(static_cast<std::size_t>(dtype)); }

}  // namespace

std::string_view dtype_name(DType dtype) { return facts_of(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts.at(i).name == name) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

unsigned dtype_bits(DType dtype) { return facts_of(dtype).bits; }
unsigned dtype_word_bytes(DType dtype) { return facts_of(dtype).word_bytes; }

}  // namespace hfd::format
