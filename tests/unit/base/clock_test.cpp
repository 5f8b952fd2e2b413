// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <doctest/doctest.h>

namespace hfd::base {
namespace {

TEST_SUITE("base/clock") {
  TEST_CASE("known times are written as RFC 3339 in UTC") {
    CHECK(to_rfc3339(0) == "1970-01-01T00:00:00Z");
    CHECK(to_rfc3339(1'796'125'575'000'000'000) == "2026-12-01T11:46:15Z");
    CHECK(to_rfc3339(1'796'125'575'000'000'001) == "2026-12-01T11:46:15.000000001Z");
    CHECK(to_rfc3339(-1) == "1969-12-31T23:59:59.999999999Z");
    CHECK(to_rfc3339(951'782'400'000'000'000) == "2000-02-29T00:00:00Z");
  }

  TEST_CASE("what is written is read back") {
    for (const UnixNanoseconds time :
         {UnixNanoseconds{0}, UnixNanoseconds{-1}, UnixNanoseconds{1}, UnixNanoseconds{1'796'125'575'123'456'789},
          UnixNanoseconds{4'102'444'800'000'000'000}, UnixNanoseconds{-2'208'988'800'000'000'000}}) {
      const auto read = from_rfc3339(to_rfc3339(time));
      REQUIRE(read.ok());
      CHECK(*read == time);
    }
  }

  TEST_CASE("fewer decimals than nine count from the left") {
    const auto read = from_rfc3339("1970-01-01T00:00:00.5Z");
    REQUIRE(read.ok());
    CHECK(*read == 500'000'000);
  }

  TEST_CASE("anything else is corrupt") {
    for (const char* text :
         {"", "Z", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01T00:00:00+01:00", "1970-13-01T00:00:00Z",
          "1970-01-32T00:00:00Z", "1970-01-01T24:00:00Z", "1970-01-01T00:60:00Z", "1970-01-01 00:00:00Z",
          "1970-01-01T00:00:00.Z", "1970-01-01T00:00:00.1234567890Z", "1970-01-01T00:00:00.12x4Z",
          "9999-01-01T00:00:00Z", "19x0-01-01T00:00:00Z", "1970-01-01T00:00:00Zjunk"}) {
      CAPTURE(text);
      const auto read = from_rfc3339(text);
      REQUIRE_FALSE(read.ok());
      CHECK(read.error().code == ErrorCode::corrupt);
    }
  }

  TEST_CASE("a deadline lies ahead") { CHECK(deadline_in(std::chrono::milliseconds(1000)) > SteadyClock::now()); }
}

}  // namespace
}  // namespace hfd::base
