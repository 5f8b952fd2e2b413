// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace hfd::base {
namespace {

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes out;
  for (const unsigned value : values) {
    out.push_back(static_cast<std::byte>(value));
  }
  return out;
}

TEST_SUITE("base/bytes") {
  TEST_CASE("integers are little-endian at any alignment") {
    Bytes out = bytes_of({0xff});
    append_le<std::uint32_t>(out, 0x01020304U);
    append_le<std::uint64_t>(out, 0x1122334455667788U);
    REQUIRE(out.size() == 13);
    CHECK(out[1] == std::byte{4});
    CHECK(load_le<std::uint32_t>(out.data() + 1) == 0x01020304U);
    CHECK(load_le<std::uint64_t>(out.data() + 5) == 0x1122334455667788U);
  }

  TEST_CASE("varints of every length come back") {
    for (unsigned shift = 0; shift < 64; ++shift) {
      for (const std::uint64_t value : {(std::uint64_t{1} << shift) - 1, std::uint64_t{1} << shift,
                                        std::numeric_limits<std::uint64_t>::max() >> (63 - shift)}) {
        Bytes out;
        append_varint(out, value);
        CHECK(out.size() <= 10);
        ByteReader reader(out);
        const auto read = reader.varint();
        REQUIRE(read.ok());
        CHECK(*read == value);
        CHECK(reader.left() == 0);
      }
    }
  }

  TEST_CASE("a varint that ends early is corrupt") {
    const Bytes cut = bytes_of({0x80, 0x80});
    ByteReader reader(cut);
    const auto read = reader.varint();
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code == ErrorCode::corrupt);
  }

  TEST_CASE("a varint of more than 64 bits is corrupt") {
    const Bytes too_large = bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02});
    CHECK_FALSE(ByteReader(too_large).varint().ok());
    const Bytes too_long = bytes_of({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00});
    CHECK_FALSE(ByteReader(too_long).varint().ok());
  }

  TEST_CASE("reading past the end is corrupt and takes nothing") {
    const Bytes three = bytes_of({1, 2, 3});
    ByteReader reader(three);
    CHECK_FALSE(reader.integer<std::uint32_t>().ok());
    CHECK(reader.left() == 3);
    CHECK_FALSE(reader.take(std::numeric_limits<std::uint64_t>::max()).ok());
    const auto two = reader.take(2);
    REQUIRE(two.ok());
    CHECK((*two)[1] == std::byte{2});
    CHECK(reader.left() == 1);
  }

  TEST_CASE("is_zero looks at every byte, the odd tail too") {
    for (const std::size_t size : {0U, 1U, 7U, 8U, 9U, 64U, 65U}) {
      Bytes bytes(size);
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      CHECK(is_zero(bytes));
      for (std::size_t at = 0; at < size; ++at) {
        bytes[at] = std::byte{0x80};
        CHECK_FALSE(is_zero(bytes));
        bytes[at] = std::byte{0};
      }
    }
  }

  TEST_CASE("text and bytes are the same bytes") {
    const std::string text("a\0b", 3);
    const Bytes copy = to_bytes(text);
    CHECK(as_text(copy) == text);
    CHECK(as_bytes(text).size() == 3);
    CHECK(to_bytes("").empty());
  }
}

}  // namespace
}  // namespace hfd::base
