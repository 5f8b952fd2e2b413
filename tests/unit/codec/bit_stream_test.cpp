// SPDX-License-Identifier: Apache-2.0
#include "codec/bit_stream.hpp"

#include <random>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "codec/rice.hpp"

using hfd::base::Bytes;
using hfd::codec::BitReader;
using hfd::codec::BitWriter;

TEST_SUITE("codec/bit_stream") {
  TEST_CASE("bits come back in order for all counts") {
    std::mt19937_64 random(1);
    std::vector<std::pair<std::uint64_t, unsigned>> fields;
    Bytes out;
    BitWriter writer(out);
    for (int i = 0; i < 5000; ++i) {
      const auto count = static_cast<unsigned>(random() % 33);
      const std::uint64_t bits = random() & ((std::uint64_t{1} << count) - 1);
      fields.emplace_back(bits, count);
      writer.put(bits, count);
    }
    writer.finish();
    BitReader reader(out);
    for (const auto& [bits, count] : fields) {
      REQUIRE(reader.take(count) == bits);
    }
    CHECK_FALSE(reader.overrun());
    CHECK(reader.bytes_left() == 0);
  }

  TEST_CASE("Rice codes come back for all parameters, escapes included") {
    for (const bool wide : {false, true}) {
      for (unsigned k = 0; k <= hfd::codec::rice_k_max; ++k) {
        Bytes out;
        BitWriter writer(out);
        const std::vector<std::uint64_t> values = {0, 1, 19, 20, 21, 1000, 0xFFFFFFFFU};
        std::uint64_t bits = 0;
        for (const std::uint64_t value : values) {
          hfd::codec::put_rice(writer, value, k, wide);
          bits += hfd::codec::rice_bits(value, k, wide);
        }
        if (wide) {
          hfd::codec::put_rice(writer, UINT64_MAX, k, wide);
          bits += hfd::codec::rice_bits(UINT64_MAX, k, wide);
        }
        writer.finish();
        CHECK(out.size() == (bits + 7) / 8);
        BitReader reader(out);
        for (const std::uint64_t value : values) {
          CHECK(hfd::codec::take_rice(reader, k, wide) == value);
        }
        if (wide) {
          CHECK(hfd::codec::take_rice(reader, k, wide) == UINT64_MAX);
        }
        CHECK_FALSE(reader.overrun());
      }
    }
  }

  TEST_CASE("a reader past its end yields zeros and says so") {
    const Bytes bytes(9, std::byte{0xFF});
    BitReader reader(bytes);
    CHECK(reader.take(32) == 0xFFFFFFFFU);
    CHECK(reader.take(32) == 0xFFFFFFFFU);
    CHECK(reader.take(8) == 0xFF);
    CHECK_FALSE(reader.overrun());
    CHECK(reader.take(32) == 0);
    CHECK(reader.take_unary(31) == 0);
    CHECK(reader.overrun());
  }

  TEST_CASE("bytes that nobody took are counted") {
    const Bytes bytes(20, std::byte{0});
    BitReader reader(bytes);
    CHECK(reader.bytes_left() == 20);
    reader.take(9);
    CHECK(reader.bytes_left() == 18);
  }
}
