// SPDX-License-Identifier: Apache-2.0
#include "format/header.hpp"

#include <array>
#include <string>

#include <doctest/doctest.h>

#include "base/bytes.hpp"

using hfd::Result;
using hfd::base::as_bytes;
using hfd::format::Header;
using hfd::format::parse_header;

namespace {

bool accepts(const std::string& json) { return parse_header(as_bytes(json)).ok(); }

Result<std::uint64_t> json_bytes(std::uint64_t stated, std::uint64_t file_bytes) {
  std::array<std::byte, 8> first{};
  hfd::base::store_le(first.data(), stated);
  return hfd::format::header_json_bytes(first, file_bytes);
}

}  // namespace

TEST_SUITE("format/header") {
  TEST_CASE("tensors come in order of their offsets, in file coordinates") {
    const std::string json =
        R"({"__metadata__":{"format":"pt"},)"
        R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
        R"("a":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4],"extra":[1]}})";
    const Result<Header> header = parse_header(as_bytes(json));
    REQUIRE(header.ok());
    CHECK(header->data_offset == 8 + json.size());
    CHECK(header->file_bytes == header->data_offset + 12);
    REQUIRE(header->tensors.size() == 2);
    CHECK(header->tensors[0].name == "a");
    CHECK(header->tensors[0].elements() == 2);
    CHECK(header->tensors[1].range == hfd::ByteRange{header->data_offset + 4, 8});
  }

  TEST_CASE("no tensors, scalars, empty tensors and white space are accepted") {
    CHECK(accepts("{}"));
    CHECK(accepts(" {}\n\t  "));
    CHECK(accepts(R"({"__metadata__":null})"));
    CHECK(accepts(R"({"":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})"));
    CHECK(accepts(R"({"e":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},)"
                  R"("f":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})"));
    CHECK(accepts(R"({"f4":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})"));
  }

  TEST_CASE("what the library refuses is refused") {
    CHECK_FALSE(accepts(""));
    CHECK_FALSE(accepts("[]"));
    CHECK_FALSE(accepts(std::string("{}\0", 3)));
    CHECK_FALSE(accepts("\xEF\xBB\xBF{}"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"I4","shape":[2],"data_offsets":[0,1]}})"));
    CHECK_FALSE(accepts(R"({"a":{"shape":[1],"data_offsets":[0,1]}})"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})"));
    CHECK_FALSE(accepts(R"({"__metadata__":{"k":1}})"));
  }

  TEST_CASE("holes, overlaps and overflows are refused") {
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                        R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})"));
    CHECK_FALSE(
        accepts(R"({"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,8]}})"));
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[18446744073709551615],)"
                        R"("data_offsets":[0,18446744073709551615]}})"));
  }

  TEST_CASE("duplicate tensor keys are refused, unlike in the library") {
    CHECK_FALSE(accepts(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                        R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})"));
  }

  TEST_CASE("the stated header length is checked against limit and file") {
    CHECK(json_bytes(2, 10).ok());
    CHECK_FALSE(json_bytes(3, 10).ok());
    CHECK_FALSE(json_bytes(0, 10).ok());
    CHECK_FALSE(json_bytes(UINT64_MAX, 10).ok());
    CHECK(json_bytes(100'000'000, 200'000'000).ok());
    CHECK_FALSE(json_bytes(100'000'001, 200'000'000).ok());
    CHECK_FALSE(hfd::format::header_json_bytes({}, 7).ok());
  }
}
