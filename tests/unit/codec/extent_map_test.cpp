// SPDX-License-Identifier: Apache-2.0
#include "codec/extent_map.hpp"

#include <doctest/doctest.h>

using hfd::ByteRange;
using namespace hfd::codec;  // NOLINT(google-build-using-namespace): the suite is about it

namespace {

Extent mapped(std::uint64_t offset, std::uint64_t size, WordKind kind, std::uint64_t from) {
  return {{offset, size}, ExtentUse::mapped, kind, 0, {from, size}};
}

}  // namespace

TEST_SUITE("codec/extent_map") {
  TEST_CASE("pieces cover the block, gaps are literal bytes") {
    const ExtentMap extents = {mapped(10, 20, WordKind::bf16, 100)};
    const BlockLayout layout = block_layout(extents, {0, 64}, true);
    REQUIRE(layout.pieces.size() == 3);
    CHECK(layout.pieces[0].group == group_literal);
    CHECK(layout.pieces[1].group == static_cast<unsigned>(WordKind::bf16));
    CHECK(layout.pieces[1].at == 10);
    CHECK(layout.pieces[1].bytes == 20);
    CHECK(layout.pieces[2].bytes == 34);
    REQUIRE(layout.sources.size() == 1);
    CHECK(layout.sources[0].range == ByteRange{100, 20});
  }

  TEST_CASE("a word cut by the block's edge is coded as bytes on both sides") {
    const ExtentMap extents = {mapped(1, 100, WordKind::w4, 0)};
    const BlockLayout first = block_layout(extents, {0, 64}, true);
    const BlockLayout second = block_layout(extents, {64, 64}, true);
    CHECK(first.group_bytes[static_cast<unsigned>(WordKind::w4)] == 60);
    CHECK(first.group_bytes[static_cast<unsigned>(WordKind::w1)] == 3);
    CHECK(second.group_bytes[static_cast<unsigned>(WordKind::w1)] == 1);
    CHECK(second.group_bytes[static_cast<unsigned>(WordKind::w4)] == 36);
    CHECK(second.source_bytes == 37);
    CHECK(second.sources[0].range == ByteRange{63, 37});
  }

  TEST_CASE("without sources every piece is literal and words keep their kind") {
    const ExtentMap extents = {mapped(0, 64, WordKind::f32, 0)};
    const BlockLayout layout = block_layout(extents, {0, 64}, false);
    REQUIRE(layout.pieces.size() == 1);
    CHECK(layout.pieces[0].group == group_literal + static_cast<unsigned>(WordKind::f32));
    CHECK(layout.source_bytes == 0);
  }

  TEST_CASE("extents that continue each other are joined, others are not") {
    ExtentMap extents = {mapped(0, 8, WordKind::bf16, 50), mapped(8, 8, WordKind::bf16, 58),
                         mapped(16, 8, WordKind::bf16, 70), mapped(24, 8, WordKind::w1, 78),
                         mapped(32, 0, WordKind::w1, 0)};
    merge_extents(extents);
    REQUIRE(extents.size() == 3);
    CHECK(extents[0].target == ByteRange{0, 16});
    CHECK(extents[0].from == ByteRange{50, 16});
  }
}
