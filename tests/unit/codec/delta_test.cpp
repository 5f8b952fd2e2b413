// SPDX-License-Identifier: Apache-2.0
// Round trips of whole objects.
#include <doctest/doctest.h>

#include "codec/delta_fixture.hpp"
#include "format/dtype.hpp"

using hfd::base::Bytes;
using namespace hfd::test;  // NOLINT(google-build-using-namespace): helpers of the tests

TEST_SUITE("codec/delta") {
  TEST_CASE("every dtype comes back at every density of change") {
    for (int d = 0; d <= static_cast<int>(hfd::format::DType::u64); ++d) {
      const auto dtype = static_cast<hfd::format::DType>(d);
      const std::string name(hfd::format::dtype_name(dtype));
      CAPTURE(name);
      const std::uint64_t elements = 4096;
      const Bytes data = random_bytes(elements * hfd::format::dtype_bits(dtype) / 8, 1);
      const Bytes source = make_safetensors({{"w", name, {elements}, data}});
      for (const double share : {0.0, 0.001, 0.1, 1.0}) {
        const Bytes changed = nudged(data, hfd::format::dtype_word_bytes(dtype), share, 2, 2);
        const Bytes target = make_safetensors({{"w", name, {elements}, changed}});
        check_round_trip(target, {{"model.safetensors", &source}});
      }
    }
  }

  TEST_CASE("odd sizes, odd offsets and blocks that cut words come back") {
    for (const std::size_t pad : {1U, 7U, 8U}) {
      const Bytes a = random_bf16(70001, 1);
      const Bytes b = random_bytes(33333, 2);
      const Bytes c = random_bytes(4 * 10007, 3);
      const Bytes source = make_safetensors(
          {{"b", "U8", {33333}, b}, {"a", "BF16", {70001}, a}, {"c", "F32", {10007}, c}}, pad);
      const Bytes target = make_safetensors({{"b", "U8", {33333}, b},
                                             {"a", "BF16", {70001}, nudged(a, 2, 0.01, 1, 4)},
                                             {"c", "F32", {10007}, nudged(c, 4, 0.01, 9, 5)}},
                                            pad);
      const MadeDelta delta =
          check_round_trip(target, {{"model.safetensors", &source}}, 64U << 10U);
      CHECK(delta.object.size() < target.size() / 20);
      CHECK(delta.encoded.sources.size() == 1);
      CHECK(delta.encoded.total_elements == 33333 + 70001 + 10007);
    }
  }

  TEST_CASE("every block mode is used where it fits") {
    const std::size_t block = 64U << 10U;
    const Bytes weights = random_bf16(block / 2 * 5, 1);
    Bytes now = weights;
    const auto part = [&](std::size_t i) {
      return Bytes(weights.begin() + static_cast<std::ptrdiff_t>(i * block),
                   weights.begin() + static_cast<std::ptrdiff_t>((i + 1) * block));
    };
    const auto put = [&](std::size_t i, const Bytes& bytes) {
      std::copy(bytes.begin(), bytes.end(), now.begin() + static_cast<std::ptrdiff_t>(i * block));
    };
    put(1, nudged(part(1), 2, 0.01, 1, 2));
    put(2, nudged(part(2), 2, 0.95, 2, 3));
    put(3, random_bytes(block, 4));
    put(4, Bytes(block, std::byte{0}));
    const Bytes source =
        make_safetensors({{"w", "BF16", {weights.size() / 2}, weights}}, block - 8);
    const Bytes target = make_safetensors({{"w", "BF16", {now.size() / 2}, now}}, block - 8);
    const MadeDelta delta = check_round_trip(target, {{"model.safetensors", &source}},
                                             static_cast<std::uint32_t>(block));
    const hfd::codec::DeltaInfo info = info_of(delta.object);
    CHECK(info.modes.same == 2);  // the header's block and the first
    CHECK(info.modes.sparse == 1);
    CHECK(info.modes.dense == 1);
    CHECK(info.modes.raw == 1);
    CHECK(info.modes.zero == 1);
    CHECK(info.index_bytes + info.payload_bytes == delta.object.size());
  }

  TEST_CASE("NaN payloads and signed zeros are bytes like others") {
    Bytes values;
    for (const std::uint32_t bits : {0x7FC00001U, 0xFFC12345U, 0x80000000U, 0U, 0x7F800000U}) {
      hfd::base::append_le(values, bits);
    }
    Bytes other = values;
    other[11] = std::byte{0x00};  // -0.0 becomes +0.0
    other[0] = std::byte{0x02};   // another NaN
    const Bytes source = make_safetensors({{"n", "F32", {5}, values}});
    const Bytes target = make_safetensors({{"n", "F32", {5}, other}});
    const MadeDelta delta = check_round_trip(target, {{"model.safetensors", &source}});
    CHECK(delta.encoded.changed_elements == 2);
  }

  TEST_CASE("empty and tiny targets come back, with and without a source") {
    const Bytes source = random_bytes(100, 1);
    for (const std::size_t size : {0U, 1U, 7U, 8U, 9U, 65535U, 65536U, 65537U}) {
      const Bytes target = random_bytes(size, 2);
      check_round_trip(target, {});
      check_round_trip(target, {{"model.safetensors", &source}});
      check_round_trip(target, {{"model.safetensors", &target}});
    }
  }

  TEST_CASE("the object does not depend on the number of threads") {
    const Bytes a = random_bf16(1U << 20U, 1);
    const Bytes source = make_safetensors({{"w", "BF16", {1U << 20U}, a}});
    const Bytes target = make_safetensors({{"w", "BF16", {1U << 20U}, nudged(a, 2, 0.02, 2, 2)}});
    const MadeDelta one = make_delta(target, {{"model.safetensors", &source}}, 64U << 10U, 1);
    const MadeDelta four = make_delta(target, {{"model.safetensors", &source}}, 64U << 10U, 4);
    CHECK(one.object == four.object);
  }

  TEST_CASE("a source that helps nowhere is not listed") {
    const Bytes source = make_safetensors({{"w", "F32", {50000}, random_bytes(200000, 1)}});
    const Bytes target = make_safetensors({{"w", "F32", {50000}, random_bytes(200000, 2)}});
    const MadeDelta delta = check_round_trip(target, {{"model.safetensors", &source}}, 64U << 10U);
    for (const auto& used : delta.encoded.sources) {
      CHECK(used.bytes == source.size());  // at most for the block with the header
    }
    CHECK(delta.object.size() < target.size() + target.size() / 100 + 64);
  }

  TEST_CASE("an impossible block size is refused") {
    hfd::base::MemoryBytes target({});
    hfd::base::ThreadPool pool("test", 1);
    for (const std::uint32_t size : {0U, 1U, 100000U, 16U << 20U}) {
      hfd::codec::EncodeOptions options;
      options.block_bytes = size;
      const auto sink = [](hfd::base::ByteView) { return hfd::Result<void>{}; };
      CHECK_FALSE(hfd::codec::encode_delta(target, {}, options, pool, sink).ok());
    }
  }

  TEST_CASE("a cancelled encode is stale and an error of the sink comes through") {
    const Bytes bytes = random_bytes(1U << 20U, 1);
    hfd::base::MemoryBytes target(bytes);
    hfd::base::ThreadPool pool("test", 2);
    hfd::codec::EncodeOptions options;
    int asked = 0;
    options.cancelled = [&] { return ++asked == 3; };
    const auto fine = [](hfd::base::ByteView) { return hfd::Result<void>{}; };
    const auto cancelled = hfd::codec::encode_delta(target, {}, options, pool, fine);
    REQUIRE_FALSE(cancelled.ok());
    CHECK(cancelled.error().code == hfd::ErrorCode::stale);
    options.cancelled = {};
    const auto full = [](hfd::base::ByteView) {
      return hfd::Result<void>(hfd::Error{hfd::ErrorCode::no_space, "full"});
    };
    const auto stopped = hfd::codec::encode_delta(target, {}, options, pool, full);
    REQUIRE_FALSE(stopped.ok());
    CHECK(stopped.error().code == hfd::ErrorCode::no_space);
  }
}
