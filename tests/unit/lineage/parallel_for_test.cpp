// SPDX-License-Identifier: Apache-2.0
#include "lineage/parallel_for.hpp"

#include <atomic>

#include <doctest/doctest.h>

namespace hfd::lineage {
namespace {

TEST_SUITE("lineage/parallel_for") {
  TEST_CASE("every item is worked on once") {
    base::ThreadPool pool("test", 4);
    std::atomic<std::size_t> sum{0};
    CHECK(parallel_for(pool, 1000, [&](std::size_t i) -> Result<void> {
            sum += i;
            return {};
          }).ok());
    CHECK(sum == 999 * 1000 / 2);
    CHECK(parallel_for(pool, 0, [](std::size_t) -> Result<void> { return Error{}; }).ok());
  }

  TEST_CASE("an error ends the round and comes back") {
    base::ThreadPool pool("test", 3);
    std::atomic<std::size_t> begun{0};
    const auto done = parallel_for(pool, 100'000, [&](std::size_t i) -> Result<void> {
      ++begun;
      if (i == 10) {
        return Error{ErrorCode::corrupt, "ten"};
      }
      return {};
    });
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().message == "ten");
    CHECK(begun >= 10);
  }
}

}  // namespace
}  // namespace hfd::lineage
