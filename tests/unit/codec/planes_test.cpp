// SPDX-License-Identifier: Apache-2.0
#include "codec/planes.hpp"

#include <doctest/doctest.h>

#include "codec/delta_fixture.hpp"

using hfd::base::Bytes;
using hfd::base::ByteView;
using namespace hfd::codec;  // NOLINT(google-build-using-namespace): the suite is about it

TEST_SUITE("codec/planes") {
  TEST_CASE("differences of every word kind come back") {
    for (unsigned k = 0; k < word_kind_count; ++k) {
      const auto kind = static_cast<WordKind>(k);
      const Bytes source = hfd::test::random_bytes(4096, k);
      for (const Bytes& target : {source, hfd::test::nudged(source, word_bytes(kind), 0.9, 2, k),
                                  hfd::test::random_bytes(4096, k + 50)}) {
        Bytes coded;
        encode_dense(kind, source, target, coded);
        Bytes out(source.size());
        REQUIRE(decode_dense(kind, coded, source, out).ok());
        CHECK(out == target);
      }
    }
  }

  TEST_CASE("words of every kind come back from their planes") {
    for (unsigned k = 0; k < word_kind_count; ++k) {
      const auto kind = static_cast<WordKind>(k);
      for (const std::size_t words : {1U, 3U, 1000U}) {
        const Bytes bytes = hfd::test::random_bytes(words * word_bytes(kind), k);
        Bytes coded;
        encode_word_planes(kind, bytes, coded);
        Bytes out(bytes.size());
        REQUIRE(decode_word_planes(kind, coded, out).ok());
        CHECK(out == bytes);
      }
    }
  }

  TEST_CASE("bf16 weights shrink by about 30 per cent") {
    const Bytes bytes = hfd::test::random_bf16(65536, 1);
    Bytes coded;
    encode_word_planes(WordKind::bf16, bytes, coded);
    CHECK(coded.size() < bytes.size() * 72 / 100);
  }

  TEST_CASE("cut planes are corrupt") {
    const Bytes bytes = hfd::test::random_bf16(500, 2);
    Bytes coded;
    encode_word_planes(WordKind::bf16, bytes, coded);
    Bytes out(bytes.size());
    for (std::size_t size = 0; size < coded.size(); ++size) {
      CHECK_FALSE(decode_word_planes(WordKind::bf16, ByteView(coded).first(size), out).ok());
    }
  }
}
