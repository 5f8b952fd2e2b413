// SPDX-License-Identifier: Apache-2.0
#include "format/shard_index.hpp"

#include <doctest/doctest.h>

using hfd::base::as_bytes;
using hfd::format::parse_shard_index;

TEST_SUITE("format/shard_index") {
  TEST_CASE("tensors map to files and each file is listed once") {
    const auto index = parse_shard_index(
        as_bytes(R"({"metadata":{"total_size":3},"weight_map":{"b":"2","a":"1","c":"2"}})"));
    REQUIRE(index.ok());
    CHECK(index->files == std::vector<std::string>{"1", "2"});
    CHECK(index->file_of_tensor.at("c") == "2");
  }

  TEST_CASE("an empty weight_map is fine") {
    const auto index = parse_shard_index(as_bytes(R"({"weight_map":{}})"));
    REQUIRE(index.ok());
    CHECK(index->files.empty());
  }

  TEST_CASE("other shapes are corrupt") {
    for (const char* text : {"", "{}", "[]", R"({"weight_map":[]})", R"({"weight_map":{"a":1}})"}) {
      CHECK_FALSE(parse_shard_index(as_bytes(text)).ok());
    }
  }
}
