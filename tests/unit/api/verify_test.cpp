// SPDX-License-Identifier: Apache-2.0
#include "api/verify.hpp"

#include <doctest/doctest.h>

#include "api/api_fixture.hpp"

namespace hfd::api {
namespace {

using test::ApiFixture;
using test::matrix;
using test::safetensors;
using test::Tree;

/// A bucket with a base, an anchor-less delta, a blob and two versions.
struct VerifyFixture : ApiFixture {
  VerifyFixture() {
    auto w = matrix("w", 3000, 1);
    test::write_tree(folder / "base", Tree{{"m.safetensors", safetensors({w})}});
    w.bytes[7] = static_cast<char>(w.bytes[7] ^ 1);
    publish(Tree{{"m.safetensors", safetensors({w})}, {"config.json", "{\"x\": 1}"}},
            folder / "base");
    w.bytes[9] = static_cast<char>(w.bytes[9] ^ 1);
    publish(Tree{{"m.safetensors", safetensors({w})}, {"config.json", "{\"x\": 1}"}});
  }
  std::unique_ptr<remote::Remote> remote = test::open_folder_remote(bucket);
  Verification verify() {
    const auto session = open();
    auto result = verify_bucket(*session);
    REQUIRE(result.ok());
    return std::move(*result);
  }
  std::string first_object(const std::string& prefix) { return remote->list(prefix)->front().name; }
  void flip(const std::string& name, std::size_t at) {
    std::string text = test::text_of(*remote, name);
    text[at] = static_cast<char>(text[at] ^ 1);
    test::put_text(*remote, name, text);
  }
};

TEST_SUITE("api/verify") {
  TEST_CASE("a whole bucket is ok, and everything is counted") {
    VerifyFixture f;
    const Verification result = f.verify();
    CHECK(result.bad.empty());
    CHECK(result.versions == 3);
    CHECK(result.objects == 3);
    std::uint64_t bytes = 0;
    for (const char* prefix : {"hfdelta/blobs", "hfdelta/deltas"}) {
      const auto listed = *f.remote->list(prefix);
      for (const auto& object : listed) {
        bytes += object.bytes;
      }
    }
    CHECK(result.bytes == bytes);
  }

  TEST_CASE("a flipped bit anywhere in an object is found, with the file that needs it") {
    VerifyFixture f;
    const std::string delta = f.first_object("hfdelta/deltas");
    f.flip(delta, f.remote->head(delta)->bytes / 2);
    const Verification result = f.verify();
    REQUIRE_FALSE(result.bad.empty());
    CHECK(result.bad.front().object == delta);
    CHECK(result.bad.front().version.size() == 64);
    CHECK_FALSE(result.bad.front().reason.empty());
  }

  TEST_CASE("a missing and a cut object are found") {
    VerifyFixture f;
    REQUIRE(f.remote->remove(f.first_object("hfdelta/blobs")).ok());
    const std::string delta = f.first_object("hfdelta/deltas");
    test::put_text(*f.remote, delta, test::text_of(*f.remote, delta).substr(0, 50));
    const Verification result = f.verify();
    CHECK(result.bad.size() >= 3);  // the blob is needed by both versions
  }

  TEST_CASE("a damaged manifest and a claim of nothing are found") {
    VerifyFixture f;
    const auto session = f.open();
    const VersionId head = *session->bucket().resolve("head", "main");
    f.flip(lineage::version_object(head), 5);
    test::put_text(*f.remote, "hfdelta/refs/odd/0000000001", "nonsense");
    test::put_text(*f.remote, "hfdelta/refs/odd/0000000002", std::string(64, 'a') + "\n");
    const Verification result = f.verify();
    CHECK(result.bad.size() == 3);
    CHECK(result.versions == 2);
  }

  TEST_CASE("a base that is gone or of another size is found") {
    VerifyFixture f;
    test::write_tree(f.folder / "base", Tree{{"m.safetensors", "short"}});
    CHECK_FALSE(f.verify().bad.empty());
    std::filesystem::remove_all(f.folder / "base");
    CHECK_FALSE(f.verify().bad.empty());
  }

  TEST_CASE("a folder that is no bucket cannot be verified") {
    ApiFixture f;
    test::write_tree(f.source, Tree{{"a", "x"}});
    const auto session = Session::open({.source = f.source});
    CHECK(verify_bucket(**session).error().code == ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace hfd::api
