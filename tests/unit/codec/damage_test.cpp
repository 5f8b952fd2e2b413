// SPDX-License-Identifier: Apache-2.0
// Hostile and damaged objects: an error or the exact bytes, never other bytes, never a crash.
#include <doctest/doctest.h>

#include "codec/delta_fixture.hpp"
#include "codec/directory.hpp"
#include "codec/index_page.hpp"

using hfd::base::Bytes;
using hfd::base::ByteView;
using namespace hfd::test;  // NOLINT(google-build-using-namespace): helpers of the tests

namespace {

/// An object with all kinds of groups: text, literal, sparse, dense.
struct Example {
  Bytes source;
  Bytes target;
  Bytes object;
  Example() {
    const Bytes a = random_bf16(3000, 1);
    const Bytes b = random_bf16(2000, 2);
    source =
        make_safetensors({{"a", "BF16", {3000}, a}, {"f", "F32", {100}, random_bytes(400, 3)}});
    target = make_safetensors({{"a", "BF16", {3000}, nudged(a, 2, 0.02, 3, 4)},
                               {"new", "BF16", {2000}, b},
                               {"f", "F32", {100}, nudged(random_bytes(400, 3), 4, 0.9, 5, 6)}});
    object = make_delta(target, {{"model.safetensors", &source}}).object;
  }
};

void check_error_or_exact(const Example& example, const Bytes& object) {
  const auto rebuilt = apply_object(object, {&example.source});
  if (rebuilt.ok()) {
    CHECK(*rebuilt == example.target);
  }
}

/// An object made of a directory alone, over no payloads.
Bytes bare_object(const hfd::codec::DirectoryData& data) {
  return hfd::codec::write_directory(data, 0);
}

bool parses(const Bytes& object) {
  hfd::base::MemoryBytes bytes(object);
  return hfd::codec::read_directory(bytes).ok();
}

}  // namespace

TEST_SUITE("codec/damage") {
  TEST_CASE("any flipped byte gives an error or the exact bytes") {
    const Example example;
    for (std::size_t at = 0; at < example.object.size(); ++at) {
      CAPTURE(at);
      for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
        Bytes object = example.object;
        object[at] ^= static_cast<std::byte>(flip);
        check_error_or_exact(example, object);
      }
    }
  }

  TEST_CASE("cut and extended objects are refused") {
    const Example example;
    for (std::size_t size = 0; size < example.object.size(); ++size) {
      const Bytes object(example.object.begin(),
                         example.object.begin() + static_cast<std::ptrdiff_t>(size));
      CHECK_FALSE(apply_object(object, {&example.source}).ok());
    }
    Bytes longer = example.object;
    longer.push_back(std::byte{0});
    CHECK_FALSE(apply_object(longer, {&example.source}).ok());
  }

  TEST_CASE("another format version is unsupported, not corrupt") {
    Example example;
    example.object[example.object.size() - hfd::codec::footer_bytes + 7] = std::byte{9};
    const auto result = apply_object(example.object, {&example.source});
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == hfd::ErrorCode::unsupported);
  }

  TEST_CASE("wrong source bytes of the right size are corrupt") {
    const Example example;
    Bytes wrong = example.source;
    wrong[wrong.size() / 2] ^= std::byte{1};
    hfd::base::MemoryBytes object(example.object);
    hfd::base::MemoryBytes source(wrong);
    const auto result =
        hfd::codec::apply_delta(object, {&source}, [](ByteView) { return hfd::Result<void>{}; });
    REQUIRE_FALSE(result.ok());
    CHECK(result.error().code == hfd::ErrorCode::corrupt);
  }

  TEST_CASE("missing and wrongly sized sources are refused") {
    const Example example;
    hfd::base::MemoryBytes object(example.object);
    hfd::base::MemoryBytes shorter(ByteView(example.source).first(10));
    const auto sink = [](ByteView) { return hfd::Result<void>{}; };
    CHECK_FALSE(hfd::codec::apply_delta(object, {}, sink).ok());
    CHECK_FALSE(hfd::codec::apply_delta(object, {&shorter}, sink).ok());
  }

  TEST_CASE("directories that lie are refused") {
    hfd::codec::DirectoryData empty;
    CHECK(parses(bare_object(empty)));
    SUBCASE("a block too large") { empty.block_log2 = 24; }
    SUBCASE("a block too small") { empty.block_log2 = 15; }
    SUBCASE("hashes too short") { empty.hash_bytes = 7; }
    SUBCASE("no blocks on a page") { empty.page_blocks = 0; }
    SUBCASE("a target without pages") { empty.target_bytes = 1; }
    SUBCASE("an impossible target") { empty.target_bytes = UINT64_MAX; }
    SUBCASE("pages beyond the object") {
      empty.target_bytes = 1;
      empty.pages.push_back({10, 10, {}});
    }
    SUBCASE("an extent beyond the target") {
      empty.extents.push_back({{0, 1}, hfd::codec::ExtentUse::literal, {}, 0, {}});
    }
    SUBCASE("a class table out of order") {
      empty.tables[4].starts = {0, 5, 5};
      empty.tables[4].gap_bits = {0, 0, 0};
      empty.tables[4].count_bits = {0, 0, 0};
    }
    CHECK_FALSE(parses(bare_object(empty)));
  }

  TEST_CASE("extents that leave their source or repeat text are refused") {
    using hfd::codec::ExtentUse;
    hfd::codec::DirectoryData data;
    data.target_bytes = 1000;
    data.pages.push_back({0, 0, {}});
    data.sources.push_back({{}, 100});
    CHECK(parses(bare_object(data)));
    SUBCASE("past the end") {
      data.extents.push_back({{0, 10}, ExtentUse::mapped, {}, 0, {91, 10}});
    }
    SUBCASE("far past the end") {
      data.extents.push_back({{0, 10}, ExtentUse::mapped, {}, 0, {UINT64_MAX - 3, 10}});
    }
    SUBCASE("two texts in a block") {
      data.extents.push_back({{0, 10}, ExtentUse::text, {}, 0, {0, 100}});
      data.extents.push_back({{10, 10}, ExtentUse::text, {}, 0, {0, 100}});
    }
    CHECK_FALSE(parses(bare_object(data)));
  }

  TEST_CASE("a block that says same without a source is refused") {
    hfd::codec::DirectoryData data;
    data.target_bytes = 1000;
    hfd::codec::BlockEntry same;
    same.mode = hfd::codec::BlockMode::same;
    Bytes object = hfd::codec::write_page({same}, data.hash_bytes);
    data.pages.push_back({object.size(), 0, hfd::codec::page_hash(object)});
    hfd::base::append(object, hfd::codec::write_directory(data, object.size()));
    REQUIRE(parses(object));
    CHECK_FALSE(apply_object(object, {}).ok());
  }

  TEST_CASE("a zstd frame that claims a terabyte is refused without allocating") {
    Bytes object = hfd::base::to_bytes(
        std::string_view("\x04\x28\xB5\x2F\xFD\xE0\0\0\0\0\0\x01\0\0\x01\0\0", 17));
    hfd::codec::DirectoryData data;
    data.target_bytes = 1000;
    hfd::codec::BlockEntry raw;
    raw.mode = hfd::codec::BlockMode::raw;
    raw.payload_bytes = object.size();
    const Bytes page = hfd::codec::write_page({raw}, data.hash_bytes);
    data.pages.push_back({page.size(), object.size(), hfd::codec::page_hash(page)});
    hfd::base::append(object, page);
    hfd::base::append(object, hfd::codec::write_directory(data, object.size()));
    REQUIRE(parses(object));
    CHECK_FALSE(apply_object(object, {}).ok());
  }
}
