// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include <doctest/doctest.h>

#include "base/json.hpp"
#include "lineage/closure.hpp"
#include "lineage/manifest_samples.hpp"

namespace hfd::lineage {
namespace {

Manifest parsed(const std::string& text) {
  auto manifest = parse_manifest(base::as_bytes(text));
  INFO(
      (manifest.ok() ? std::string() : manifest.error().message + " / " + manifest.error().object));
  REQUIRE(manifest.ok());
  return std::move(*manifest);
}

TEST_SUITE("lineage/manifest") {
  TEST_CASE("what is written is read back the same") {
    const std::string text = serialize_manifest(test::sample_manifest());
    const Manifest manifest = parsed(text);
    CHECK(serialize_manifest(manifest) == text);
    CHECK(manifest.parent == test::sample_manifest().parent);
    CHECK(manifest.sequence == 7);
    CHECK(manifest.message == test::sample_manifest().message);
    REQUIRE(manifest.files.size() == 6);
    CHECK(manifest.files[0].executable);
    CHECK(manifest.files[1].mtime == -1);
    CHECK(manifest.files[2].path == "bad\xFFname");
    CHECK(manifest.files[4].symlink_target == "../a.json");
    CHECK(manifest.files[5].kind == FileEntry::Kind::folder);
    CHECK(manifest.contents.size() == 5);
    const auto& edges = manifest.contents.at(test::content_of("target")).edges;
    REQUIRE(edges.size() == 2);
    CHECK(std::get<DeltaEdge>(edges[0]).sources.size() == 2);
    CHECK(std::get<UpstreamEdge>(edges[1]).path == "b\xFE/x");
  }

  TEST_CASE("the text is that of the layout") {
    Manifest manifest;
    manifest.ref = "main";
    manifest.sequence = 1;
    manifest.files = {test::manifest_file("x", "")};
    manifest.contents.emplace(test::content_of(""),
                              Content{test::content_of(""), 0, {test::identity_edge("")}});
    const std::string empty = test::content_of("").hex();
    CHECK(serialize_manifest(manifest) ==
          "{\"hfdeltafs\":0,\"parent\":null,\"seq\":1,\"ref\":\"main\",\"time\":\"1970-01-01T00:00:"
          "00Z\",\"message\":\"\","
          "\"stats\":{\"full_bytes\":0,\"stored_bytes\":0,\"changed_elements\":0,\"total_"
          "elements\":0},"
          "\"files\":[{\"path\":\"x\",\"bytes\":0,\"sha256\":\"" +
              empty +
              "\",\"mtime\":\"1970-01-01T00:00:00Z\"}],"
              "\"contents\":{\"" +
              empty + "\":{\"bytes\":0,\"edges\":[{\"kind\":\"blob\",\"object\":\"" + empty +
              "\",\"bytes\":0,\"encoding\":\"identity\"}]}}}\n");
  }

  TEST_CASE("unknown members are ignored") {
    std::string text = serialize_manifest(test::sample_manifest());
    text.insert(1, "\"later\":{\"a\":[1]},");
    text.insert(text.find("{\"path\":\"a.json\"") + 1, "\"color\":\"red\",");
    const Manifest manifest = parsed(text);
    CHECK(serialize_manifest(manifest) == serialize_manifest(test::sample_manifest()));
  }

  TEST_CASE("a newer layout is unsupported and says so") {
    std::string text = serialize_manifest(test::sample_manifest());
    text.replace(text.find("\"hfdeltafs\":0"), 13, "\"hfdeltafs\":1");
    const auto manifest = parse_manifest(base::as_bytes(text));
    REQUIRE_FALSE(manifest.ok());
    CHECK(manifest.error().code == ErrorCode::unsupported);
  }

  TEST_CASE("times beyond what text can hold are cut to it") {
    Manifest manifest = test::sample_manifest();
    manifest.files[0].mtime = std::numeric_limits<base::UnixNanoseconds>::min();
    manifest.files[1].mtime = std::numeric_limits<base::UnixNanoseconds>::max();
    const std::string text = serialize_manifest(manifest);
    CHECK(serialize_manifest(parsed(text)) == text);
  }

  TEST_CASE("a closure holds a content and all it is made of, and nothing else") {
    const Manifest manifest = test::sample_manifest();
    std::map<ContentHash, Content> into;
    CHECK(add_closure(manifest.contents, test::content_of("target"), into));
    CHECK(into.size() == 3);
    CHECK(into.count(test::content_of("source")) == 1);
    CHECK(into.count(test::content_of("one")) == 0);
    CHECK_FALSE(add_closure(manifest.contents, test::content_of("unknown"), into));
    CHECK(into.size() == 3);
  }
}

}  // namespace
}  // namespace hfd::lineage
