// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace hfd::base {
namespace {

std::string error_of(std::string_view text, const JsonLimits& limits = {}) {
  const auto parsed = parse_json(as_bytes(text), limits);
  REQUIRE_FALSE(parsed.ok());
  CHECK(parsed.error().code == ErrorCode::corrupt);
  return parsed.error().message;
}

TEST_SUITE("base/json") {
  TEST_CASE("a document is written back byte for byte in its own order") {
    const std::string text =
        R"({"z":1,"a":[true,false,null,-5,"x\"y\\z\nn"],"m":{"q":{}},"e":[],"u":"é模型😀"})";
    const auto parsed = parse_json(as_bytes(text));
    REQUIRE(parsed.ok());
    CHECK(parsed->dump() == text);
  }

  TEST_CASE("64-bit integers stay exact") {
    const auto parsed = parse_json(as_bytes(R"([18446744073709551615,-9223372036854775808,9007199254740993])"));
    REQUIRE(parsed.ok());
    CHECK(parsed->dump() == "[18446744073709551615,-9223372036854775808,9007199254740993]");
    const Json::Array& numbers = *parsed->as_array();
    REQUIRE(numbers[0].as_unsigned().ok());
    CHECK(*numbers[0].as_unsigned() == std::numeric_limits<std::uint64_t>::max());
    CHECK_FALSE(numbers[1].as_unsigned().ok());
  }

  TEST_CASE("a number that is no integer is not taken for one") {
    for (const char* text : {"[1.5]", "[1.0]", "[1e3]", "[18446744073709551616]", "[-1]", "[\"1\"]", "[true]", "[null]"}) {
      CAPTURE(text);
      const auto parsed = parse_json(as_bytes(text));
      REQUIRE(parsed.ok());
      CHECK_FALSE((*parsed->as_array())[0].as_unsigned().ok());
    }
  }

  TEST_CASE("a key that stands twice is refused and named") {
    CHECK(error_of(R"({"weight":1,"weight":1})").find("weight") != std::string::npos);
    error_of(R"({"a":{"b":1,"\u0062":2}})");
    CHECK(parse_json(as_bytes(R"({"a":{"b":1},"c":{"b":2}})")).ok());
  }

  TEST_CASE("nesting has a limit, in arrays and in objects") {
    const auto nested = [](int depth) { return std::string(static_cast<std::size_t>(depth), '[') +
                                               std::string(static_cast<std::size_t>(depth), ']'); };
    CHECK(parse_json(as_bytes(nested(64))).ok());
    error_of(nested(65));
    std::string objects;
    for (int i = 0; i < 65; ++i) {
      objects += R"({"a":)";
    }
    error_of(objects + "1" + std::string(65, '}'));
    error_of(std::string(1'000'000, '['));
  }

  TEST_CASE("a text over the size limit is refused before it is parsed") {
    JsonLimits limits;
    limits.bytes_max = 4;
    error_of("[1,2]", limits);
    CHECK(parse_json(as_bytes("[12]"), limits).ok());
  }

  TEST_CASE("a byte order mark, trailing text and broken text are refused") {
    error_of("\xEF\xBB\xBF{}");
    error_of("{} x");
    CHECK(parse_json(as_bytes(std::string_view("{}  \n\t "))).ok());
    error_of(std::string_view("{}\0", 3));
    for (const char* text : {"", " ", "{", "[1,]", "{\"a\":}", "{'a':1}", "[01]", "[+1]", "[NaN]", "nul", "\"\x01\"",
                             "\"\\ud800\"", "\"open", "[1 2]", "{\"a\" 1}", "// c\n{}"}) {
      CAPTURE(text);
      error_of(text);
    }
  }

  TEST_CASE("text that is not UTF-8 is refused") {
    error_of("\"\xff\"");
    error_of("\"\xc0\xaf\"");
    error_of("{\"\xed\xa0\x80\":1}");
  }

  TEST_CASE("is_utf8 refuses overlong forms, surrogates and cut sequences") {
    CHECK(is_utf8(""));
    CHECK(is_utf8("a\xC3\xA9\xE6\xA8\xA1\xF0\x9F\x98\x80"));
    for (const char* text : {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                             "\xF8\x88\x80\x80\x80", "\xE6\xA8"}) {
      CHECK_FALSE(is_utf8(text));
    }
  }

  TEST_CASE("bytes that are not UTF-8 are written as a replacement character") {
    CHECK(Json(std::string("a\xff")).dump() == "\"a\xEF\xBF\xBD\"");
    CHECK(Json(std::string("\x01")).dump() == "\"\\u0001\"");
  }

  TEST_CASE("members are found by key and their absence is named") {
    const auto parsed = parse_json(as_bytes(R"({"name":"x","size":7})"));
    REQUIRE(parsed.ok());
    CHECK(*parsed->string_member("name") == "x");
    CHECK(*parsed->unsigned_member("size") == 7);
    CHECK(parsed->find("none") == nullptr);
    const auto missing = parsed->unsigned_member("none");
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().message.find("none") != std::string::npos);
    CHECK_FALSE(parsed->unsigned_member("name").ok());
    CHECK_FALSE(parsed->string_member("size").ok());
    CHECK(Json(1).find("name") == nullptr);
  }

  TEST_CASE("pretty text parses to the same document") {
    Json document = Json::object();
    document.set("files", Json::array().push(Json::object().set("bytes", 12U)).push("x")).set("empty", Json::object());
    const auto parsed = parse_json(as_bytes(document.dump_pretty()));
    REQUIRE(parsed.ok());
    CHECK(parsed->dump() == document.dump());
    CHECK(document.dump() == R"({"files":[{"bytes":12},"x"],"empty":{}})");
  }

  TEST_CASE("base64 gives the answers of RFC 4648 and comes back") {
    CHECK(to_base64({}).empty());
    CHECK(to_base64(as_bytes("f")) == "Zg==");
    CHECK(to_base64(as_bytes("fo")) == "Zm8=");
    CHECK(to_base64(as_bytes("foobar")) == "Zm9vYmFy");
    for (const std::string_view text : {"", "a", "ab", "abc", "abcd", "\xff\xfe\xfd"}) {
      const auto back = from_base64(to_base64(as_bytes(text)));
      REQUIRE(back.ok());
      CHECK(as_text(*back) == text);
    }
    for (const char* text : {"Zg=", "Zg", "Z===", "====", "Zg==Zg==", "Z*==", "Zm8 "}) {
      CAPTURE(text);
      CHECK_FALSE(from_base64(text).ok());
    }
  }
}

}  // namespace
}  // namespace hfd::base
