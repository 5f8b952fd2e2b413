// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "publish/publisher_fixture.hpp"

namespace hfd::publish {
namespace {

using test::matrix;
using test::PublisherFixture;
using test::safetensors;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string out(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<char>(length >> (8 * i));
  }
  return out + rest;
}

/// The reason given for one file; empty when it is whole.
std::string reason_of(const std::string& content, const std::string& path = "m.safetensors") {
  PublisherFixture f;
  const auto found = find_incomplete({f.file(path, content)});
  REQUIRE(found.ok());
  REQUIRE(found->size() <= 1);
  if (found->empty()) {
    return {};
  }
  CHECK(found->front().path == path);
  return found->front().reason;
}

TEST_SUITE("publish/publisher_incomplete") {
  TEST_CASE("a safetensors file that ends before its header says is incomplete") {
    const std::string whole = safetensors({matrix("w", 2, 1)});
    CHECK(reason_of(whole).empty());
    CHECK(reason_of(whole + "trailing").empty());
    const std::string cut = reason_of(whole.substr(0, whole.size() - 1));
    CHECK(cut.find(std::to_string(whole.size() - 1) + " of " + std::to_string(whole.size())) !=
          std::string::npos);
    CHECK_FALSE(reason_of(whole.substr(0, whole.size() - 1024)).empty());
  }

  TEST_CASE("a header that is cut is incomplete") {
    const std::string whole = safetensors({matrix("w", 2, 1)});
    CHECK(reason_of(whole.substr(0, 20)).find("20 of ") != std::string::npos);
    CHECK_FALSE(reason_of(whole.substr(0, 8)).empty());
    CHECK_FALSE(reason_of(with_length(1000, "  {")).empty());
  }

  TEST_CASE("files that say nothing about their size are published as they are") {
    for (const std::string& content :
         {std::string(), std::string("1234567"), with_length(0, ""), with_length(100'000'001, "{"),
          with_length(~std::uint64_t{0}, "{"), with_length(1000, "<html>"), with_length(2, "[]"),
          with_length(4, "{:}}"), std::string("<!DOCTYPE html><html>"),
          std::string("version https://git-lfs.github.com/spec/v1\n")}) {
      CHECK(reason_of(content).empty());
    }
    const std::string whole = safetensors({matrix("w", 2, 1)});
    CHECK(reason_of(whole.substr(0, 20), "m.bin").empty());
  }

  TEST_CASE("an index that names a shard which is not in its folder is incomplete") {
    PublisherFixture f;
    const std::string index =
        R"({"weight_map":{"a":"m-1-of-2.safetensors","b":"m-2-of-2.safetensors"}})";
    const std::string shard = safetensors({matrix("a", 2, 1)});
    std::vector<PublishFile> files{f.file("s/model.safetensors.index.json", index),
                                   f.file("s/m-1-of-2.safetensors", shard),
                                   f.file("m-2-of-2.safetensors", shard)};
    const auto missing = find_incomplete(files);
    REQUIRE(missing.ok());
    REQUIRE(missing->size() == 1);
    CHECK(missing->front().path == "s/model.safetensors.index.json");
    CHECK(missing->front().reason.find("m-2-of-2.safetensors") != std::string::npos);
    files.push_back(f.file("s/m-2-of-2.safetensors", shard));
    CHECK(find_incomplete(files)->empty());
  }

  TEST_CASE("known files are not looked at") {
    PublisherFixture f;
    auto file = f.file("m.safetensors", safetensors({matrix("w", 2, 1)}).substr(0, 50));
    file.known = true;
    CHECK(find_incomplete({file})->empty());
  }

  TEST_CASE("an index that is no index says nothing") {
    PublisherFixture f;
    CHECK(find_incomplete({f.file("model.safetensors.index.json", "<html>")})->empty());
    CHECK(
        find_incomplete({f.file("model.safetensors.index.json", R"({"weight_map":{"a":"../x"}})")})
            ->empty());
  }

  TEST_CASE("shards that a new index does not name are stale") {
    PublisherFixture f;
    const std::string index = R"({"weight_map":{"a":"m-00001-of-00001.safetensors"}})";
    const std::string shard = safetensors({matrix("a", 2, 1)});
    const auto stale = find_stale_shards({f.file("model.safetensors.index.json", index),
                                          f.file("m-00001-of-00001.safetensors", shard),
                                          f.file("m-00002-of-00003.safetensors", shard),
                                          f.file("adapter.safetensors", shard),
                                          f.file("sub/m-00002-of-00003.safetensors", shard)});
    REQUIRE(stale.ok());
    REQUIRE(stale->size() == 1);
    CHECK(stale->front().path == "m-00002-of-00003.safetensors");
  }
}

}  // namespace
}  // namespace hfd::publish
