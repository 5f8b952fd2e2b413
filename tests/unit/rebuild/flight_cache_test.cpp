// SPDX-License-Identifier: Apache-2.0
#include "rebuild/flight_cache.hpp"

#include <string>

#include <doctest/doctest.h>

namespace hfd::rebuild {
namespace {

std::uint64_t weigh(const std::string& text) { return text.size(); }
using Cache = FlightCache<int, std::string, std::hash<int>>;

/// Loads that a test ends by hand, and the answers that came of them.
struct Flights {
  Cache cache;
  std::vector<Cache::Take> loads;
  std::vector<Result<Cache::Pointer>> answers;

  explicit Flights(std::uint64_t weight_max) : cache(weight_max, weigh) {}
  void get(int key) {
    cache.get(
        key, [this](Cache::Take take) { loads.push_back(std::move(take)); },
        [this](Result<Cache::Pointer> value) { answers.push_back(std::move(value)); });
  }
  void end(std::size_t load, const std::string& text) {
    loads.at(load)(std::make_shared<const std::string>(text));
  }
  void put(int key, const std::string& text) {
    get(key);
    end(loads.size() - 1, text);
  }
};

TEST_SUITE("rebuild/flight_cache") {
  TEST_CASE("many who ask during a load share it and its value") {
    Flights f(100);
    for (int i = 0; i < 3; ++i) {
      f.get(7);
    }
    CHECK(f.loads.size() == 1);
    CHECK(f.answers.empty());
    f.end(0, "seven");
    REQUIRE(f.answers.size() == 3);
    for (const auto& answer : f.answers) {
      REQUIRE(answer.ok());
      CHECK(**answer == "seven");
      CHECK(*answer == *f.answers.front());
    }
  }

  TEST_CASE("what is there is given at once without a load") {
    Flights f(100);
    f.put(7, "seven");
    f.get(7);
    CHECK(f.loads.size() == 1);
    REQUIRE(f.answers.size() == 2);
    CHECK(**f.answers[1] == "seven");
  }

  TEST_CASE("an error reaches all who wait and is not kept") {
    Flights f(100);
    f.get(7);
    f.get(7);
    f.loads.at(0)(Error{ErrorCode::unavailable, "no answer"});
    REQUIRE(f.answers.size() == 2);
    CHECK(f.answers[0].error().code == ErrorCode::unavailable);
    CHECK(f.answers[1].error().code == ErrorCode::unavailable);
    CHECK_FALSE(f.cache.is_known(7));
    f.get(7);
    REQUIRE(f.loads.size() == 2);
    f.end(1, "right");
    CHECK(**f.answers[2] == "right");
  }

  TEST_CASE("keys have loads of their own") {
    Flights f(100);
    f.get(1);
    f.get(2);
    REQUIRE(f.loads.size() == 2);
    f.end(1, "two");
    REQUIRE(f.answers.size() == 1);
    CHECK(**f.answers[0] == "two");
    CHECK(f.cache.find(1) == nullptr);
    f.end(0, "one");
    CHECK(*f.cache.find(1) == "one");
  }

  TEST_CASE("what was used longest ago goes when the weight is over the limit") {
    Flights f(10);
    f.put(1, "1111");
    f.put(2, "2222");
    CHECK(f.cache.find(1) != nullptr);  // used again: now 2 is the oldest
    f.put(3, "3333");
    CHECK(f.cache.find(2) == nullptr);
    CHECK(f.cache.find(1) != nullptr);
    CHECK(f.cache.find(3) != nullptr);
  }

  TEST_CASE("a heavy value pushes out several light ones") {
    Flights f(10);
    f.put(1, "11");
    f.put(2, "22");
    f.put(3, "33");
    f.put(4, "4444444");
    CHECK(f.cache.find(1) == nullptr);
    CHECK(f.cache.find(2) == nullptr);
    CHECK(f.cache.find(3) != nullptr);
    CHECK(f.cache.find(4) != nullptr);
  }

  TEST_CASE("a value over the limit is handed out, not kept, and pushes nothing out") {
    Flights f(10);
    f.put(1, "1");
    f.put(2, "more than ten bytes");
    CHECK(**f.answers[1] == "more than ten bytes");
    CHECK(f.cache.find(2) == nullptr);
    CHECK(f.cache.find(1) != nullptr);
  }

  TEST_CASE("a value in use outlives its eviction") {
    Flights f(4);
    f.put(1, "1111");
    const Cache::Pointer held = f.cache.find(1);
    f.put(2, "2222");
    CHECK(f.cache.find(1) == nullptr);
    CHECK(*held == "1111");
  }

  TEST_CASE("forget makes the next get load anew and gives the weight back") {
    Flights f(10);
    f.put(1, "1111");
    f.put(2, "2222");
    f.cache.forget(1);
    f.cache.forget(99);  // unknown: nothing happens
    CHECK(f.cache.find(1) == nullptr);
    f.put(3, "333333");
    CHECK(f.cache.find(2) != nullptr);
    CHECK(f.cache.find(3) != nullptr);
    f.get(1);
    CHECK(f.loads.size() == 4);
  }

  TEST_CASE("a key is known while it is loaded and while it is there") {
    Flights f(10);
    CHECK_FALSE(f.cache.is_known(1));
    f.get(1);
    CHECK(f.cache.is_known(1));
    f.end(0, "1");
    CHECK(f.cache.is_known(1));
    f.cache.forget(1);
    CHECK_FALSE(f.cache.is_known(1));
  }

  TEST_CASE("a call-back may ask the cache again") {
    Flights f(10);
    std::string nested;
    f.cache.get(
        1, [&](Cache::Take take) { f.loads.push_back(std::move(take)); },
        [&](const Result<Cache::Pointer>& value) {
          REQUIRE(value.ok());
          f.cache.get(
              1, [](const Cache::Take&) { FAIL("it is there already"); },
              [&](Result<Cache::Pointer> again) { nested = **again; });
        });
    f.end(0, "one");
    CHECK(nested == "one");
  }
}

}  // namespace
}  // namespace hfd::rebuild
