// SPDX-License-Identifier: Apache-2.0
#include "rebuild/read_ahead.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "base/hash.hpp"

namespace hfd::rebuild {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t window_max = 8 * mib;
constexpr std::uint64_t step = 128 * kib;

ContentHash content(const std::string& name) { return base::content_hash(base::as_bytes(name)); }

/// Notes requests of `step` bytes with these numbers; returns what was to be read ahead.
std::vector<ByteRange> note_steps(ReadAhead& ahead, const std::vector<std::uint64_t>& numbers,
                                  std::uint64_t content_bytes) {
  std::vector<ByteRange> ranges;
  for (const std::uint64_t number : numbers) {
    const ByteRange range = ahead.note(content("a"), {number * step, step}, content_bytes);
    if (range.size > 0) {
      ranges.push_back(range);
    }
  }
  return ranges;
}

std::vector<std::uint64_t> in_order(std::uint64_t count) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < count; ++i) {
    numbers.push_back(i);
  }
  return numbers;
}

TEST_SUITE("rebuild/read_ahead") {
  TEST_CASE("the first touch reads nothing ahead, wherever it is") {
    for (const std::uint64_t offset : {std::uint64_t{0}, 3 * mib, 50 * mib}) {
      ReadAhead ahead(window_max);
      CHECK(ahead.note(content("a"), {offset, step}, 100 * mib).size == 0);
    }
  }

  TEST_CASE("a look at a header stays cheap") {
    ReadAhead ahead(window_max);
    CHECK(note_steps(ahead, in_order(3), 100 * mib).empty());
  }

  TEST_CASE("random reads read nothing ahead") {
    ReadAhead ahead(window_max);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t offset = (i % 2 == 0 ? 900 * mib : 0) + static_cast<std::uint64_t>(i) * mib;
      CHECK(ahead.note(content("a"), {offset, step}, 2000 * mib).size == 0);
    }
  }

  TEST_CASE("sequential reads get a window that starts beyond them and grows to its limit") {
    ReadAhead ahead(window_max);
    std::uint64_t ahead_end = 0;
    std::uint64_t longest = 0;
    for (std::uint64_t i = 0; i < 400; ++i) {
      const ByteRange range = ahead.note(content("a"), {i * step, step}, 1000 * mib);
      if (range.size == 0) {
        continue;
      }
      CHECK(range.offset >= (i + 1) * step);
      CHECK(range.offset >= ahead_end);  // nothing twice
      CHECK(range.end() <= (i + 1) * step + window_max);
      ahead_end = range.end();
      longest = std::max(longest, range.end() - (i + 1) * step);
    }
    CHECK(longest == window_max);
    CHECK(ahead_end > 400 * step);
  }

  TEST_CASE("windows come in few large pieces that leave no gap") {
    ReadAhead ahead(window_max);
    const auto ranges = note_steps(ahead, in_order(800), 1000 * mib);
    REQUIRE(ranges.size() > 1);
    CHECK(ranges.size() < 60);
    for (std::size_t i = 1; i < ranges.size(); ++i) {
      CHECK(ranges[i].offset == ranges[i - 1].end());
    }
  }

  TEST_CASE("requests that overtake each other are still sequential") {
    ReadAhead ahead(window_max);
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 64; i += 4) {
      for (const std::uint64_t swapped : {i + 2, i, i + 3, i + 1}) {
        numbers.push_back(swapped);
      }
    }
    const auto ranges = note_steps(ahead, numbers, 1000 * mib);
    REQUIRE_FALSE(ranges.empty());
    CHECK(ranges.back().end() > 64 * step + 4 * mib);
  }

  TEST_CASE("a window ends with the content") {
    ReadAhead ahead(window_max);
    const std::uint64_t bytes = 20 * step + 77;
    const auto ranges = note_steps(ahead, in_order(20), bytes);
    REQUIRE_FALSE(ranges.empty());
    for (const ByteRange& range : ranges) {
      CHECK(range.end() <= bytes);
    }
    CHECK(ranges.back().end() == bytes);
    CHECK(ahead.note(content("a"), {20 * step, 77}, bytes).size == 0);
  }

  TEST_CASE("a jump far away starts anew") {
    ReadAhead ahead(window_max);
    REQUIRE_FALSE(note_steps(ahead, in_order(16), 1000 * mib).empty());
    CHECK(ahead.note(content("a"), {500 * mib, step}, 1000 * mib).size == 0);
    CHECK(ahead.note(content("a"), {500 * mib + step, step}, 1000 * mib).size == 0);
  }

  TEST_CASE("contents are followed apart") {
    ReadAhead ahead(window_max);
    for (std::uint64_t i = 0; i < 3; ++i) {
      CHECK(ahead.note(content("a"), {i * step, step}, 100 * mib).size == 0);
      CHECK(ahead.note(content("b"), {i * step, step}, 100 * mib).size == 0);
    }
    CHECK(ahead.note(content("a"), {3 * step, step}, 100 * mib).size > 0);
    CHECK(ahead.note(content("c"), {3 * step, step}, 100 * mib).size == 0);
  }

  TEST_CASE("with very many contents the oldest starts anew") {
    ReadAhead ahead(window_max);
    note_steps(ahead, in_order(3), 100 * mib);
    for (int i = 0; i < 300; ++i) {
      static_cast<void>(ahead.note(content("other" + std::to_string(i)), {0, step}, 100 * mib));
    }
    CHECK(ahead.note(content("a"), {3 * step, step}, 100 * mib).size == 0);
  }
}

}  // namespace
}  // namespace hfd::rebuild
