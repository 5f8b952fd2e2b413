// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "hfdeltafs/publisher.hpp"
#include "hfdeltafs/version.hpp"

#include "api/api_fixture.hpp"

namespace hfd {
namespace {

TEST_SUITE("api/library") {
  TEST_CASE("a folder is published and read back through the public headers") {
    test::ApiFixture f;
    test::write_tree(f.source, {{"a.txt", "hello world"}, {"sub/b", ""}, {"x.tmp", "junk"}});
    const auto receipt =
        publish_folder({.folder = f.source, .bucket = f.bucket, .message = "first"});
    REQUIRE(receipt.ok());
    CHECK(receipt->sequence == 1);
    CHECK(receipt->files == 2);
    CHECK(receipt->full_bytes == 11);
    CHECK(receipt->warnings.size() == 1);
    auto opened = OpenVersion::open({.source = f.bucket});
    REQUIRE(opened.ok());
    const OpenVersion version = std::move(*opened);
    CHECK(version.id() == receipt->version);
    REQUIRE(version.files().size() == 2);
    CHECK(version.files()[0].path == "a.txt");
    const auto bytes = version.read("a.txt", {6, 5});
    REQUIRE(bytes.ok());
    CHECK(base::as_text(*bytes) == "world");
    CHECK(version.read("sub/b", {0, 0})->empty());
    CHECK(version.read("a.txt", {6, 6}).error().code == ErrorCode::invalid_argument);
    CHECK(version.read("none", {0, 0}).error().code == ErrorCode::not_found);
    CHECK(OpenVersion::open({.source = f.bucket, .version = "v9"}).error().code ==
          ErrorCode::not_found);
  }
}

}  // namespace
}  // namespace hfd
