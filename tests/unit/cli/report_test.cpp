// SPDX-License-Identifier: Apache-2.0
#include "cli/report.hpp"

#include <map>

#include <doctest/doctest.h>

namespace hfd::cli {
namespace {

const std::map<ErrorCode, int> exit_codes{
    {ErrorCode::not_found, 3},       {ErrorCode::invalid_argument, 2},
    {ErrorCode::already_exists, 1},  {ErrorCode::corrupt, 1},
    {ErrorCode::unavailable, 1},     {ErrorCode::permission, 7},
    {ErrorCode::no_space, 1},        {ErrorCode::read_only, 1},
    {ErrorCode::stale, 1},           {ErrorCode::busy, 1},
    {ErrorCode::incomplete, 4},      {ErrorCode::conflict, 5},
    {ErrorCode::left_in_staging, 6}, {ErrorCode::unsupported, 1},
    {ErrorCode::io, 1},
};

TEST_SUITE("cli/report") {
  TEST_CASE("every code has its exit code") {
    REQUIRE(exit_codes.size() == static_cast<std::size_t>(ErrorCode::io) + 1);
    for (const auto& [code, number] : exit_codes) {
      const auto name = error_code_name(code);  // clang 14 captures no structured binding
      INFO("code " << name);
      CHECK(exit_code(code) == number);
    }
  }

  TEST_CASE("the error line has what, object, why and what to do") {
    CHECK(error_line(Error{ErrorCode::not_found, "cannot open: it is not there", "/data/b",
                           "name it with --bucket"}) ==
          "hfdeltafs: cannot open: /data/b: it is not there; name it with --bucket");
  }

  TEST_CASE("what is absent leaves no punctuation behind") {
    CHECK(error_line(Error{ErrorCode::io, "no command given"}) == "hfdeltafs: no command given");
    CHECK(error_line(Error{ErrorCode::io, "not a size", "10X"}) == "hfdeltafs: not a size: 10X");
    CHECK(error_line(Error{ErrorCode::io, "cannot read: it is gone"}) ==
          "hfdeltafs: cannot read: it is gone");
    CHECK(error_line(Error{ErrorCode::io, "no answer", "", "try again"}) ==
          "hfdeltafs: no answer; try again");
  }

  TEST_CASE("of several reasons the innermost stands behind the object") {
    CHECK(error_line(Error{ErrorCode::corrupt, "block 3: decoding: wrong hash", "d.hfd"}) ==
          "hfdeltafs: block 3: decoding: d.hfd: wrong hash");
  }

  TEST_CASE("the error line is one line whatever names and texts hold") {
    const std::string line = error_line(
        Error{ErrorCode::io, "cannot\nread: a\r\nb", "name\nwith\tlines\x1b[31m", "do\nthis"});
    for (const char c : line) {
      CHECK(static_cast<unsigned char>(c) >= 0x20);
    }
    CHECK(line.starts_with("hfdeltafs: cannot read: name with lines"));
    CHECK(line.ends_with("; do this"));
  }

  TEST_CASE("names in other alphabets stay as they are") {
    CHECK(error_line(Error{ErrorCode::io, "gone", "модель-模型"}) ==
          "hfdeltafs: gone: модель-模型");
  }
}

}  // namespace
}  // namespace hfd::cli
