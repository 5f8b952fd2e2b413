// SPDX-License-Identifier: Apache-2.0
#include "api/tensor_compare.hpp"

#include <string_view>

#include <doctest/doctest.h>

namespace hfd::api {
namespace {

using namespace std::string_view_literals;

std::uint64_t count(std::string_view a, std::string_view b, unsigned bits) {
  return count_changed_elements(base::as_bytes(a), base::as_bytes(b), bits);
}

TEST_SUITE("api/tensor_compare") {
  TEST_CASE("elements of whole bytes count once, however many of their bytes differ") {
    CHECK(count("", "", 16) == 0);
    CHECK(count("abcdefgh", "abcdefgh", 16) == 0);
    CHECK(count("abcdefgh", "xbcdefgy", 8) == 2);
    CHECK(count("abcdefgh", "xycdefgh", 16) == 1);
    CHECK(count("abcdefgh", "xbcxefgh", 32) == 1);
    CHECK(count("abcdefgh", "xbcxefgx", 64) == 1);
  }

  TEST_CASE("elements of four and six bits are told apart within their bytes") {
    CHECK(count("\x21"sv, "\x31"sv, 4) == 1);
    CHECK(count("\x21"sv, "\x32"sv, 4) == 2);
    CHECK(count("\x00\x00\x00"sv, "\x01\x00\x80"sv, 6) == 2);
    CHECK(count("\x00\x00\x00"sv, "\x00\xff\x00"sv, 6) == 2);
    CHECK(count("\x00\x00\x00"sv, "\xff\xff\xff"sv, 6) == 4);
  }
}

}  // namespace
}  // namespace hfd::api
