// SPDX-License-Identifier: Apache-2.0
// Every check of parse_manifest, failed once.
#include <functional>

#include <doctest/doctest.h>

#include "lineage/manifest_samples.hpp"

namespace hfd::lineage {
namespace {

/// The error that the sample gives after its text was changed: `from` (must occur) replaced by
/// `to`, once.
ErrorCode after(const std::string& from, const std::string& to) {
  std::string text = serialize_manifest(test::sample_manifest());
  const std::size_t at = text.find(from);
  INFO("replacing " << from << " by " << to);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  const auto manifest = parse_manifest(base::as_bytes(text));
  REQUIRE_FALSE(manifest.ok());
  CHECK_FALSE(manifest.error().message.empty());
  return manifest.error().code;
}

/// The error that a changed sample gives when it is written and read.
ErrorCode after(const std::function<void(Manifest&)>& change) {
  Manifest manifest = test::sample_manifest();
  change(manifest);
  const auto read = parse_manifest(base::as_bytes(serialize_manifest(manifest)));
  REQUIRE_FALSE(read.ok());
  return read.error().code;
}

TEST_SUITE("lineage/manifest_bad") {
  TEST_CASE("text that is no manifest is corrupt") {
    for (const std::string text :
         {"", "{", "[]", "7", "null", "{}", "{\"hfdeltafs\":0}", "{\"hfdeltafs\":\"0\"}"}) {
      const auto manifest = parse_manifest(base::as_bytes(text));
      REQUIRE_FALSE(manifest.ok());
      CHECK(manifest.error().code == ErrorCode::corrupt);
    }
    const std::string whole = serialize_manifest(test::sample_manifest());
    for (std::size_t size = 0; size + 2 < whole.size(); size += 7) {
      CHECK_FALSE(parse_manifest(base::as_bytes(whole.substr(0, size))).ok());
    }
  }

  TEST_CASE("members that are missing or of the wrong kind are corrupt") {
    for (const std::string key : {"parent",
                                  "seq",
                                  "ref",
                                  "time",
                                  "message",
                                  "stats",
                                  "full_bytes",
                                  "stored_bytes",
                                  "changed_elements",
                                  "total_elements",
                                  "files",
                                  "contents",
                                  "uri",
                                  "revision",
                                  "path",
                                  "sha256",
                                  "mtime",
                                  "target",
                                  "edges",
                                  "object",
                                  "encoding",
                                  "directory",
                                  "directory_sha256",
                                  "sources",
                                  "bytes"}) {
      CHECK(after("\"" + key + "\":", "\"x" + key + "\":") == ErrorCode::corrupt);
    }
    CHECK(after("\"seq\":7", "\"seq\":-7") == ErrorCode::corrupt);
    CHECK(after("\"seq\":7", "\"seq\":7.5") == ErrorCode::corrupt);
    CHECK(after("\"seq\":7", "\"seq\":\"7\"") == ErrorCode::corrupt);
    CHECK(after("\"executable\":true", "\"executable\":1") == ErrorCode::corrupt);
    CHECK(after("\"kind\":\"symlink\"", "\"kind\":\"socket\"") == ErrorCode::corrupt);
    CHECK(after("\"kind\":\"symlink\"", "\"kind\":7") == ErrorCode::corrupt);
    CHECK(after("\"kind\":\"delta\"", "\"kind\":\"magic\"") == ErrorCode::corrupt);
    CHECK(after("\"encoding\":\"hfd\"", "\"encoding\":\"rot13\"") == ErrorCode::corrupt);
    CHECK(after("\"time\":\"2025", "\"time\":\"20x5") == ErrorCode::corrupt);
    CHECK(after("\"mtime\":\"2023", "\"mtime\":\"20x3") == ErrorCode::corrupt);
    CHECK(after("000000001Z", "66666666666666666666Z") == ErrorCode::corrupt);
    CHECK(after("\"sources\":[\"", "\"sources\":[7,\"") == ErrorCode::corrupt);
    CHECK(after("\"directory\":[", "\"directory\":[1,") == ErrorCode::corrupt);
    CHECK(after(test::content_of("one").hex(), "beef") == ErrorCode::corrupt);
    CHECK(after("\"parent\":\"", "\"parent\":\"zz") == ErrorCode::corrupt);
  }

  TEST_CASE("descent that cannot be is corrupt") {
    CHECK(after("\"seq\":7", "\"seq\":0") == ErrorCode::corrupt);
    CHECK(after("\"seq\":7", "\"seq\":10000000000") == ErrorCode::corrupt);
    CHECK(after("\"ref\":\"main\"", "\"ref\":\"\"") == ErrorCode::corrupt);
    CHECK(after("\"ref\":\"main\"", "\"ref\":\"../x\"") == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) { m.base->uri.clear(); }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) { m.base->uri.assign(10'000, 'u'); }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) { m.message.assign(2U << 20U, 'm'); }) == ErrorCode::corrupt);
  }

  TEST_CASE("paths that leave the tree or shadow it are corrupt") {
    const std::string long_name(256, 'n');
    for (const std::string path : {"", "/a", "..", "../a.json", "./a", "a//b", "a/", ".hfdelta",
                                   ".hfdelta/x", long_name.c_str()}) {
      CHECK(after("\"path\":\"a.json\"", "\"path\":\"" + path + "\"") == ErrorCode::corrupt);
    }
    CHECK(after("\"path\":\"a.json\"", "\"path\":\"a\\u0000b\"") == ErrorCode::corrupt);
    CHECK(after("\"path_b64\":\"", "\"path_b64\":\"!") == ErrorCode::corrupt);
    CHECK(after("\"path\":\"a.json\"", "\"path_b64\":\"YS5qc29u\"") == ErrorCode::corrupt);
  }

  TEST_CASE("files out of order, twice, or below a file are corrupt") {
    CHECK(after([](Manifest& m) { std::swap(m.files[0], m.files[1]); }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) { m.files.insert(m.files.begin(), m.files[0]); }) ==
          ErrorCode::corrupt);
    CHECK(after([](Manifest& m) { m.files[1].path = "a.json/b"; }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) {
            FileEntry below = m.files[0];
            below.path = "empty/x";
            m.files.push_back(below);
          }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) {
            FileEntry below = m.files[0];
            below.path = "d/link/x/y";
            m.files.insert(m.files.begin() + 5, below);
          }) == ErrorCode::corrupt);
  }

  TEST_CASE("symlinks out of the tree are corrupt") {
    for (const char* target : {"", "/etc/passwd", "../../x", "x/../../..", "a/.."}) {
      CHECK(after([&](Manifest& m) { m.files[4].symlink_target = target; }) == ErrorCode::corrupt);
    }
  }

  TEST_CASE("a file whose content is missing or of another size is corrupt") {
    CHECK(after([](Manifest& m) { m.contents.erase(test::content_of("one")); }) ==
          ErrorCode::corrupt);
    CHECK(after([](Manifest& m) { m.files[0].bytes = 4; }) == ErrorCode::corrupt);
  }

  TEST_CASE("edges that cannot be are corrupt") {
    const auto blob = [](Manifest& m, const char* content) -> BlobEdge& {
      return std::get<BlobEdge>(m.contents.at(test::content_of(content)).edges[0]);
    };
    const auto delta = [](Manifest& m) -> DeltaEdge& {
      return std::get<DeltaEdge>(m.contents.at(test::content_of("target")).edges[0]);
    };
    CHECK(after([&](Manifest& m) { blob(m, "one").object_bytes = 4; }) == ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) { blob(m, "one").object = test::object_named("other"); }) ==
          ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) { blob(m, "three").object_bytes = 1U << 30U; }) ==
          ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) {
            blob(m, "anchor").directory = {850, 100};
          }) == ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) {
            blob(m, "anchor").directory = {~std::uint64_t{0}, 2};
          }) == ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) { blob(m, "anchor").directory = {0, 0}; }) == ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) {
            blob(m, "anchor").object_bytes = 1ULL << 40U;
            blob(m, "anchor").directory = {0, 1ULL << 39U};
          }) == ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) { blob(m, "anchor").object_bytes = ~std::uint64_t{0}; }) ==
          ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) { delta(m).object_bytes = ~std::uint64_t{0}; }) ==
          ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) { delta(m).directory = {499, 2}; }) == ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) { delta(m).sources.clear(); }) == ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) { delta(m).sources.push_back(test::content_of("unlisted")); }) ==
          ErrorCode::corrupt);
    CHECK(after([&](Manifest& m) {
            delta(m).sources.assign(70'000, test::content_of("source"));
          }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) { m.contents.at(test::content_of("one")).edges.clear(); }) ==
          ErrorCode::corrupt);
    CHECK(after([](Manifest& m) {
            auto& edges = m.contents.at(test::content_of("one")).edges;
            edges.assign(65, edges[0]);
          }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) {
            std::get<UpstreamEdge>(m.contents.at(test::content_of("source")).edges[0]).path =
                "../x";
          }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) {
            std::get<UpstreamEdge>(m.contents.at(test::content_of("source")).edges[0]).uri = "";
          }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) {
            m.contents.at(test::content_of("source")).bytes = ~std::uint64_t{0};
          }) == ErrorCode::corrupt);
  }

  TEST_CASE("contents that are made of themselves are corrupt") {
    CHECK(after([](Manifest& m) {
            std::get<DeltaEdge>(m.contents.at(test::content_of("target")).edges[0]).sources = {
                test::content_of("target")};
          }) == ErrorCode::corrupt);
    CHECK(after([](Manifest& m) {
            DeltaEdge back =
                std::get<DeltaEdge>(m.contents.at(test::content_of("target")).edges[0]);
            back.sources = {test::content_of("target")};
            m.contents.at(test::content_of("source")).edges.push_back(back);
          }) == ErrorCode::corrupt);
  }

  TEST_CASE("a content in upper and in lower case stands twice") {
    std::string upper = test::content_of("source").hex();
    for (char& c : upper) {
      c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 32) : c;
    }
    CHECK(after("\"contents\":{", "\"contents\":{\"" + upper +
                                      "\":{\"bytes\":6,\"edges\":[{\"kind\":\"upstream\",\"uri\":"
                                      "\"u\",\"path\":\"p\"}]},") == ErrorCode::corrupt);
  }
}

}  // namespace
}  // namespace hfd::lineage
