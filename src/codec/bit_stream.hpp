// SPDX-License-Identifier: Apache-2.0
// Bits packed least significant first into bytes, through a 64-bit buffer. The reader never reads
// outside its bytes: past the end it yields zeros and remembers it; callers ask `overrun()` once.
#pragma once

#include <bit>
#include <cstdint>

#include "base/bytes.hpp"

namespace hfd::codec {

class BitWriter {
 public:
  explicit BitWriter(base::Bytes& out) : out_(out) {}
  /// Appends the low `count` bits, count <= 32.
  void put(std::uint64_t bits, unsigned count) {
    buffer_ |= (bits & ((std::uint64_t{1} << count) - 1)) << filled_;
    filled_ += count;
    if (filled_ >= 32) {
      base::append_le(out_, static_cast<std::uint32_t>(buffer_));
      buffer_ >>= 32U;
      filled_ -= 32;
    }
  }
  /// `count` one bits and a zero bit; count <= 31.
  void put_unary(unsigned count) { put((std::uint64_t{1} << count) - 1, count + 1); }
  /// Pads with zero bits to a whole byte.
  void finish() {
    for (; filled_ > 0; filled_ -= filled_ < 8 ? filled_ : 8) {
      out_.push_back(static_cast<std::byte>(buffer_ & 0xFFU));
      buffer_ >>= 8U;
    }
  }

 private:
  base::Bytes& out_;
  std::uint64_t buffer_ = 0;
  unsigned filled_ = 0;
};

class BitReader {
 public:
  explicit BitReader(base::ByteView bytes) : next_(bytes.data()), left_(bytes.size()) { refill(); }

  /// The next `count` bits, count <= 32.
  std::uint64_t take(unsigned count) {
    const std::uint64_t bits = buffer_ & ((std::uint64_t{1} << count) - 1);
    drop(count);
    return bits;
  }
  /// Number of one bits before the next zero bit, which is consumed; more than `limit` ones are not
  /// looked at: then exactly `limit` bits are consumed and `limit` is returned. limit <= 31.
  unsigned take_unary(unsigned limit) {
    const auto ones = static_cast<unsigned>(std::countr_one(buffer_));
    if (ones >= limit) {
      drop(limit);
      return limit;
    }
    drop(ones + 1);
    return ones;
  }
  /// True when more bits were taken than there are.
  bool overrun() const { return filled_ < 0; }
  /// Whole bytes that nothing was taken from.
  std::size_t bytes_left() const {
    return left_ + static_cast<std::size_t>(filled_ > 0 ? filled_ / 8 : 0);
  }

 private:
  void drop(unsigned count) {
    buffer_ >>= count;
    filled_ -= static_cast<std::int64_t>(count);
    if (filled_ < 32) {
      refill();
    }
  }
  void refill() {
    if (left_ >= 8 && filled_ >= 0) {
      buffer_ |= base::load_le<std::uint64_t>(next_) << static_cast<unsigned>(filled_);
      const auto taken = static_cast<std::size_t>((63 - filled_) / 8);
      next_ += taken;
      left_ -= taken;
      filled_ += static_cast<std::int64_t>(taken) * 8;
      return;
    }
    while (left_ > 0 && filled_ >= 0 && filled_ <= 56) {
      buffer_ |= std::to_integer<std::uint64_t>(*next_) << static_cast<unsigned>(filled_);
      ++next_;
      --left_;
      filled_ += 8;
    }
  }

  const std::byte* next_;
  std::size_t left_;
  std::uint64_t buffer_ = 0;
  std::int64_t filled_ = 0;  // bits in buffer_ that are real; negative after an overrun
};

}  // namespace hfd::codec
