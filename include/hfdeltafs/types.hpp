// SPDX-License-Identifier: Apache-2.0
// The strong types of the library: hashes that name things, and byte ranges. Used everywhere, so
// that two bare integers or strings never stand side by side. Holds no behaviour beyond text form.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "hfdeltafs/result.hpp"

namespace hfd {

/// A sha256, 32 bytes, as a value of its own type. `Tag` keeps the kinds apart.
template <class Tag>
struct Sha256Name {
  std::array<std::byte, 32> bytes{};

  /// 64 lower-case hex digits.
  std::string hex() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text(64, '0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto value = std::to_integer<unsigned>(bytes[i]);
      text[2 * i] = digits[value >> 4U];
      text[2 * i + 1] = digits[value & 15U];
    }
    return text;
  }
  /// Exactly 64 hex digits of either case, or invalid_argument.
  static Result<Sha256Name> from_hex(std::string_view text) {
    Sha256Name name;
    if (text.size() != 64) {
      return Error{ErrorCode::invalid_argument, "a sha256 has 64 hex digits", std::string(text.substr(0, 80))};
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      unsigned digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<unsigned>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<unsigned>(c - 'a') + 10;
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<unsigned>(c - 'A') + 10;
      } else {
        return Error{ErrorCode::invalid_argument, "a sha256 has 64 hex digits", std::string(text)};
      }
      const unsigned shift = i % 2 == 0 ? 4U : 0U;
      name.bytes[i / 2] |= static_cast<std::byte>(digit << shift);
    }
    return name;
  }
  auto operator<=>(const Sha256Name&) const = default;
};

/// sha256 of the whole bytes of a file as the user sees it: the identity of a *content*.
using ContentHash = Sha256Name<struct ContentTag>;
/// sha256 of the stored bytes of an object on a remote (delta, blob).
using ObjectId = Sha256Name<struct ObjectTag>;
/// sha256 of the bytes of a manifest.
using VersionId = Sha256Name<struct VersionTag>;

/// Bytes [offset, offset + size) of something. `end()` never overflows for ranges made by checked code.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  constexpr std::uint64_t end() const { return offset + size; }
  /// True when the range lies in something of `total` bytes; safe for any values.
  constexpr bool within(std::uint64_t total) const { return offset <= total && size <= total - offset; }
  auto operator<=>(const ByteRange&) const = default;
};

}  // namespace hfd

template <class Tag>
struct std::hash<hfd::Sha256Name<Tag>> {
  std::size_t operator()(const hfd::Sha256Name<Tag>& name) const noexcept {
    std::size_t value = 0;  // a sha256 is uniform already: its first word is the hash
    std::memcpy(&value, name.bytes.data(), sizeof value);
    return value;
  }
};
