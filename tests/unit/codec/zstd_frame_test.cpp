// SPDX-License-Identifier: Apache-2.0
#include "codec/zstd_frame.hpp"

#include <doctest/doctest.h>

#include "codec/delta_fixture.hpp"

using hfd::base::Bytes;
using hfd::base::ByteView;
using namespace hfd::codec;  // NOLINT(google-build-using-namespace): the suite is about it

TEST_SUITE("codec/zstd_frame") {
  TEST_CASE("frames come back, with and without a prefix") {
    const Bytes prefix = hfd::test::random_bytes(5000, 1);
    Bytes content = prefix;
    content.push_back(std::byte{7});
    Bytes alone;
    Bytes prefixed;
    zstd_compress(content, {}, 3, alone);
    CHECK(zstd_compress(content, prefix, 3, prefixed) < 100);
    Bytes out(content.size());
    REQUIRE(zstd_decompress(alone, {}, out).ok());
    CHECK(out == content);
    REQUIRE(zstd_decompress(prefixed, prefix, out).ok());
    CHECK(out == content);
    CHECK(zstd_decompress(prefixed, {}, out).ok() == false);
  }

  TEST_CASE("a frame that claims another size is refused before decoding") {
    const Bytes content(100000, std::byte{1});
    Bytes frame;
    zstd_compress(content, {}, 3, frame);
    Bytes shorter(content.size() - 1);
    CHECK_FALSE(zstd_decompress(frame, {}, shorter).ok());
    Bytes longer(content.size() + 1);
    CHECK_FALSE(zstd_decompress(frame, {}, longer).ok());
    Bytes two = frame;
    hfd::base::append(two, frame);
    Bytes out(content.size());
    CHECK_FALSE(zstd_decompress(two, {}, out).ok());
    CHECK_FALSE(zstd_decompress(ByteView(frame).first(frame.size() - 1), {}, out).ok());
  }

  TEST_CASE("a chain gives each piece from the pieces before it") {
    const Bytes content = hfd::test::random_bytes(300000, 2);
    ZstdChain chain(3);
    Bytes stream;
    std::vector<std::size_t> ends;
    for (int i = 0; i < 4; ++i) {
      chain.append(content, stream);
      ends.push_back(stream.size());
    }
    CHECK(stream.size() < content.size() + 1000);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      Bytes out(content.size());
      REQUIRE(zstd_decompress_chain(ByteView(stream).first(ends[i]), i * content.size(), out).ok());
      CHECK(out == content);
      CHECK_FALSE(
          zstd_decompress_chain(ByteView(stream).first(ends[i]), (i + 1) * content.size(), out)
              .ok());
    }
  }
}
