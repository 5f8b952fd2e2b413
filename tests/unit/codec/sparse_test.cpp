// SPDX-License-Identifier: Apache-2.0
#include "codec/sparse.hpp"

#include <doctest/doctest.h>

#include "codec/bit_stream.hpp"
#include "codec/class_tables.hpp"
#include "codec/delta_fixture.hpp"

using hfd::base::Bytes;
using hfd::base::ByteView;
using namespace hfd::codec;  // NOLINT(google-build-using-namespace): the suite is about it

namespace {

ClassTable table_for(WordKind kind, ByteView source, ByteView target) {
  ChangeHistogram histogram;
  histogram.add(kind, source, target);
  return choose_classes(histogram, 4096);
}

Bytes encode(WordKind kind, const ClassTable& table, ByteView source, ByteView target) {
  ChangeList changes;
  find_changes(kind, table, source, target, UINT64_MAX, changes);
  Bytes coded;
  encode_sparse(kind, table, changes, coded);
  return coded;
}

}  // namespace

TEST_SUITE("codec/sparse") {
  TEST_CASE("changes of every word kind come back") {
    for (unsigned k = 0; k < word_kind_count; ++k) {
      const auto kind = static_cast<WordKind>(k);
      CAPTURE(k);
      const Bytes source = hfd::test::random_bytes(8192, k);
      for (const int step : {1, 3, 100000}) {
        const Bytes target = hfd::test::nudged(source, word_bytes(kind), 0.05, step, k + 100);
        const ClassTable table = table_for(kind, source, target);
        const Bytes coded = encode(kind, table, source, target);
        Bytes out(source.size());
        REQUIRE(decode_sparse(kind, table, coded, source, out).ok());
        CHECK(out == target);
      }
    }
  }

  TEST_CASE("no change, every word changed, and the largest differences come back") {
    const Bytes source = hfd::test::random_bf16(1000, 1);
    Bytes inverted = source;
    for (std::byte& b : inverted) {
      b ^= std::byte{0x80};
    }
    for (const Bytes& target : {source, inverted, hfd::test::random_bytes(2000, 2)}) {
      const ClassTable table = table_for(WordKind::bf16, source, target);
      const Bytes coded = encode(WordKind::bf16, table, source, target);
      Bytes out(source.size());
      REQUIRE(decode_sparse(WordKind::bf16, table, coded, source, out).ok());
      CHECK(out == target);
    }
  }

  TEST_CASE("a file's table makes streams smaller than one class does") {
    const Bytes source = hfd::test::random_bf16(65536, 3);
    Bytes target = source;  // only small weights flip
    std::size_t small = 0;
    for (std::size_t at = 0; at < target.size(); at += 2) {
      const auto word = hfd::base::load_le<std::uint16_t>(target.data() + at);
      if (((word >> 7U) & 0xFFU) < 120 && ++small % 9 == 0) {
        hfd::base::store_le(target.data() + at, static_cast<std::uint16_t>(word + 1));
      }
    }
    const ClassTable table = table_for(WordKind::bf16, source, target);
    CHECK(table.count() > 1);
    CHECK(encode(WordKind::bf16, table, source, target).size() <
          encode(WordKind::bf16, ClassTable{}, source, target).size());
  }

  // Failed before 2026-12-01: the zigzag of the distance did not fit the unary code of the reader.
  TEST_CASE("a table whose gap parameter is far from the block's own still codes it") {
    for (const WordKind kind : {WordKind::w1, WordKind::w2, WordKind::bf16, WordKind::f32, WordKind::w8}) {
      const std::size_t width = word_bytes(kind);
      const Bytes source = hfd::test::random_bytes(8192, 8);
      Bytes neighbours = source;  // gaps of 0
      for (std::size_t at = 0; at < 100 * width; at += width) {
        neighbours[at] ^= std::byte{1};
      }
      Bytes distant = source;  // one large gap
      distant[8192 - width] ^= std::byte{1};
      for (const unsigned gap_bits : {0U, 8U, 15U, 16U, 20U, 31U}) {
        CAPTURE(gap_bits);
        const ClassTable table{{0}, {static_cast<std::uint8_t>(gap_bits)}, {0}};
        for (const Bytes& target : {neighbours, distant}) {
          const Bytes coded = encode(kind, table, source, target);
          Bytes out(source.size());
          REQUIRE(decode_sparse(kind, table, coded, source, out).ok());
          CHECK(out == target);
        }
      }
    }
  }

  TEST_CASE("the scan stops at its limit") {
    const Bytes source = hfd::test::random_bytes(1000, 4);
    const Bytes target = hfd::test::random_bytes(1000, 5);
    ChangeList changes;
    find_changes(WordKind::w1, ClassTable{}, source, target, 10, changes);
    CHECK_FALSE(changes.complete);
    CHECK(changes.count == 10);
  }

  TEST_CASE("cut, extended and damaged streams never read or write outside") {
    const Bytes source = hfd::test::random_bf16(512, 6);
    const Bytes target = hfd::test::nudged(source, 2, 0.1, 2, 7);
    const ClassTable table = table_for(WordKind::bf16, source, target);
    const Bytes coded = encode(WordKind::bf16, table, source, target);
    Bytes out(source.size());
    for (std::size_t size = 0; size < coded.size(); ++size) {
      CHECK_FALSE(
          decode_sparse(WordKind::bf16, table, ByteView(coded).first(size), source, out).ok());
    }
    Bytes longer = coded;
    longer.push_back(std::byte{0});
    CHECK_FALSE(decode_sparse(WordKind::bf16, table, longer, source, out).ok());
    for (std::size_t bit = 0; bit < coded.size() * 8; ++bit) {
      Bytes flipped = coded;
      flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      const auto result = decode_sparse(WordKind::bf16, table, flipped, source, out);
      static_cast<void>(result.ok());  // wrong bytes are the block hash's business
    }
  }

  TEST_CASE("a count beyond the words or beyond the stream is refused") {
    const Bytes source(8, std::byte{0});
    Bytes out(8);
    Bytes coded;
    BitWriter writer(coded);
    writer.put((1U << 20U) - 1, 20);
    writer.put(0xFFFFFFFFU, 32);
    writer.finish();
    CHECK_FALSE(decode_sparse(WordKind::w1, ClassTable{}, coded, source, out).ok());
  }
}
