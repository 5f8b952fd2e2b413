// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

namespace hfd::base {

void append_varint(Bytes& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<std::byte>(value | 0x80U));
    value >>= 7U;
  }
  out.push_back(static_cast<std::byte>(value));
}

Result<ByteView> ByteReader::take(std::uint64_t size) {
  if (size > left_.size()) {
    return Error{ErrorCode::corrupt, "the bytes end before a field does"};
  }
  const ByteView field = left_.first(static_cast<std::size_t>(size));
  left_ = left_.subspan(static_cast<std::size_t>(size));
  return field;
}

Result<std::uint64_t> ByteReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    HFD_TRY(const ByteView field, take(1));
    const auto byte = std::to_integer<std::uint64_t>(field[0]);
    const std::uint64_t bits = byte & 0x7fU;
    if (shift == 63 && bits > 1) {
      break;
    }
    value |= bits << shift;
    if ((byte & 0x80U) == 0) {
      return value;
    }
  }
  return Error{ErrorCode::corrupt, "a variable-length integer does not fit 64 bits"};
}

bool is_zero(ByteView bytes) {
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    if (load_le<std::uint64_t>(bytes.data() + i) != 0) {
      return false;
    }
  }
  for (; i < bytes.size(); ++i) {
    if (bytes[i] != std::byte{0}) {
      return false;
    }
  }
  return true;
}

}  // namespace hfd::base
