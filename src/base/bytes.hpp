// SPDX-License-Identifier: Apache-2.0
// Byte buffers, little-endian loads and stores, and a bounds-checked reader. Every layer that looks
// at file bytes uses these and nothing else: no pointer casts of file data. Does no I/O.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hfdeltafs/result.hpp"

namespace hfd::base {

/// An allocator whose resize() leaves bytes as they are: block buffers are overwritten whole, and
/// zeroing 256 KiB first costs about as much as the decode.
template <class T>
struct UninitialisedAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UninitialisedAllocator<U>;
  };
  template <class U, class... Args>
  void construct(U* place, Args&&... args) {
    if constexpr (sizeof...(Args) == 0) {
      ::new (static_cast<void*>(place)) U;
    } else {
      ::new (static_cast<void*>(place)) U(std::forward<Args>(args)...);
    }
  }
};

/// Owned bytes. `Bytes(n)` and `resize(n)` do NOT zero.
using Bytes = std::vector<std::byte, UninitialisedAllocator<std::byte>>;
using ByteView = std::span<const std::byte>;
using ByteSpan = std::span<std::byte>;

inline ByteView as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view as_text(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes to_bytes(std::string_view text) {
  Bytes bytes(text.size());
  if (!text.empty()) {
    std::memcpy(bytes.data(), text.data(), text.size());
  }
  return bytes;
}

/// Loads an unsigned integer stored little-endian. Precondition: bytes.size() >= sizeof(T). Any alignment.
template <class T>
T load_le(const std::byte* bytes) {
  static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little,
                "big-endian machines need a byte swap here");
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
template <class T>
void store_le(std::byte* bytes, T value) {
  static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little,
                "big-endian machines need a byte swap here");
  std::memcpy(bytes, &value, sizeof value);
}
template <class T>
void append_le(Bytes& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof value);
  store_le(out.data() + at, value);
}
inline void append(Bytes& out, ByteView bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }
/// LEB128, at most 10 bytes.
void append_varint(Bytes& out, std::uint64_t value);

/// Reads fields from untrusted bytes; every call checks the length left and says `corrupt` otherwise.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : left_(bytes) {}
  std::size_t left() const { return left_.size(); }

  template <class T>
  Result<T> integer() {
    HFD_TRY(const ByteView field, take(sizeof(T)));
    return load_le<T>(field.data());
  }
  /// LEB128 of at most 64 bits; an overlong or cut one is corrupt.
  Result<std::uint64_t> varint();
  /// The next `size` bytes, borrowed.
  Result<ByteView> take(std::uint64_t size);

 private:
  ByteView left_;
};

/// True when all bytes are zero.
bool is_zero(ByteView bytes);

}  // namespace hfd::base
