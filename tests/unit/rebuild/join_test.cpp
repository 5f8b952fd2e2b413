// SPDX-License-Identifier: Apache-2.0
#include "rebuild/join.hpp"

#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace hfd::rebuild {
namespace {

struct Ending {
  int count = 0;
  std::optional<Error> error;
  std::shared_ptr<Join> join = Join::create([this](Result<void> result) {
    ++count;
    if (!result.ok()) {
      error = std::move(result).error();
    }
  });
};

TEST_SUITE("rebuild/join") {
  TEST_CASE("done runs once, with the last part") {
    Ending f;
    f.join->add();
    f.join->add();
    f.join->end({});
    f.join->end({});
    CHECK(f.count == 0);
    f.join->end({});
    CHECK(f.count == 1);
    CHECK_FALSE(f.error);
  }

  TEST_CASE("parts that end at once do not run done before the maker is through") {
    Ending f;
    f.join->add();
    f.join->end({});
    CHECK(f.count == 0);
    f.join->add();
    f.join->end({});
    CHECK(f.count == 0);
    f.join->end({});
    CHECK(f.count == 1);
  }

  TEST_CASE("without parts done runs when the maker ends") {
    Ending f;
    f.join->end({});
    CHECK(f.count == 1);
  }

  TEST_CASE("the first error wins, and done still waits for all parts") {
    Ending f;
    f.join->add();
    f.join->add();
    f.join->add();
    f.join->end(Error{ErrorCode::corrupt, "first"});
    f.join->end({});
    f.join->end(Error{ErrorCode::unavailable, "second"});
    CHECK(f.count == 0);
    f.join->end({});
    REQUIRE(f.error);
    CHECK(f.error->message == "first");
    CHECK(f.count == 1);
  }

  TEST_CASE("parts that end on many threads run done once") {
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> count{0};
      const auto join = Join::create([&](const Result<void>& result) {
        CHECK(result.ok());
        count.fetch_add(1);
      });
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) {
        join->add();
        threads.emplace_back([join] { join->end({}); });
      }
      join->end({});
      for (std::thread& thread : threads) {
        thread.join();
      }
      CHECK(count.load() == 1);
    }
  }
}

}  // namespace
}  // namespace hfd::rebuild
