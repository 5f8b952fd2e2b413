// SPDX-License-Identifier: Apache-2.0
#include "api/tensor_compare.hpp"

#include <cstring>

#include "base/check.hpp"

namespace hfd::api {
namespace {

template <class Word>
std::uint64_t count_words(base::ByteView a, base::ByteView b) {
  std::uint64_t changed = 0;
  for (std::size_t at = 0; at + sizeof(Word) <= a.size(); at += sizeof(Word)) {
    changed += base::load_le<Word>(a.data() + at) != base::load_le<Word>(b.data() + at) ? 1U : 0U;
  }
  return changed;
}

/// The bits [first, first + count) of `bytes`.
unsigned bits_at(base::ByteView bytes, std::uint64_t first, unsigned count) {
  unsigned value = 0;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t bit = first + i;
    const auto byte = std::to_integer<unsigned>(bytes[static_cast<std::size_t>(bit / 8)]);
    value |= ((byte >> (bit % 8)) & 1U) << i;
  }
  return value;
}

std::uint64_t count_packed(base::ByteView a, base::ByteView b, unsigned bits) {
  const std::uint64_t elements = std::uint64_t{a.size()} * 8 / bits;
  std::uint64_t changed = 0;
  for (std::uint64_t i = 0; i < elements; ++i) {
    changed += bits_at(a, i * bits, bits) != bits_at(b, i * bits, bits) ? 1U : 0U;
  }
  return changed;
}

}  // namespace

std::uint64_t count_changed_elements(base::ByteView a, base::ByteView b, unsigned bits) {
  HFD_CHECK(a.size() == b.size() && bits > 0);
  if (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0) {
    return 0;
  }
  switch (bits) {
    case 8: return count_words<std::uint8_t>(a, b);
    case 16: return count_words<std::uint16_t>(a, b);
    case 32: return count_words<std::uint32_t>(a, b);
    case 64: return count_words<std::uint64_t>(a, b);
    default: return count_packed(a, b, bits);
  }
}

}  // namespace hfd::api
