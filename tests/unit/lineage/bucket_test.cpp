// SPDX-License-Identifier: Apache-2.0
#include "lineage/bucket.hpp"

#include <atomic>
#include <thread>

#include <doctest/doctest.h>

#include "lineage/manifest_samples.hpp"
#include "remote/folder_fixture.hpp"

namespace hfd::lineage {
namespace {

using test::put_text;

/// A bucket in a folder of its own.
struct Fixture {
  test::TempFolder folder;
  std::unique_ptr<remote::Remote> remote = test::open_folder_remote(folder.path());
  Bucket bucket{*remote, std::chrono::seconds(30)};

  /// Puts and claims a version after `parent`, number `sequence` of `ref`.
  VersionPtr publish(const std::string& ref, std::uint64_t sequence, const VersionPtr& parent,
                     const std::string& message = "") {
    Manifest manifest;
    manifest.ref = ref;
    manifest.sequence = sequence;
    manifest.message = message;
    if (parent) {
      manifest.parent = parent->id;
    }
    const auto version = bucket.put_version(manifest);
    REQUIRE(version.ok());
    REQUIRE(bucket.claim(ref, sequence, (*version)->id).ok());
    return *version;
  }
  std::vector<VersionPtr> publish_chain(std::uint64_t count) {
    std::vector<VersionPtr> chain;
    for (std::uint64_t i = 1; i <= count; ++i) {
      chain.push_back(
          publish("main", i, chain.empty() ? nullptr : chain.back(), "step " + std::to_string(i)));
    }
    return chain;
  }
  VersionId head(const std::string& ref) {
    const auto state = bucket.head(ref);
    REQUIRE(state.ok());
    REQUIRE(state->has_value());
    return (*state)->version;
  }
  ErrorCode resolve_error(const std::string& text) {
    const auto id = bucket.resolve(text, "main");
    REQUIRE_FALSE(id.ok());
    return id.error().code;
  }
};

TEST_SUITE("lineage/bucket") {
  TEST_CASE("a bucket is one when its format is there and known") {
    Fixture f;
    CHECK(*f.bucket.is_initialised() == false);
    REQUIRE(f.bucket.initialise().ok());
    CHECK(*f.bucket.is_initialised() == true);
    CHECK(test::text_of(*f.remote, "hfdelta/format") == "hfdeltafs 0\n");
    put_text(*f.remote, "hfdelta/format", "hfdeltafs 9\n");
    CHECK(f.bucket.is_initialised().error().code == ErrorCode::unsupported);
    CHECK_FALSE(f.bucket.initialise().ok());
  }

  TEST_CASE("an empty bucket has no head, no refs, no versions") {
    Fixture f;
    CHECK_FALSE(f.bucket.head("main")->has_value());
    CHECK(f.bucket.refs()->empty());
    CHECK(f.bucket.version_ids()->empty());
    CHECK(f.bucket.history("main", 10)->empty());
    CHECK(f.resolve_error("head") == ErrorCode::not_found);
    CHECK(f.bucket.head("../x").error().code == ErrorCode::invalid_argument);
  }

  TEST_CASE("the head is the newest claim, whatever the hint says") {
    Fixture f;
    const auto chain = f.publish_chain(5);
    CHECK(f.head("main") == chain[4]->id);
    put_text(*f.remote, "hfdelta/refs/main/head", "0000000002 " + chain[1]->id.hex() + "\n");
    CHECK(f.head("main") == chain[4]->id);
    put_text(*f.remote, "hfdelta/refs/main/head", "0000000099 " + chain[1]->id.hex() + "\n");
    CHECK(f.head("main") == chain[4]->id);
    put_text(*f.remote, "hfdelta/refs/main/head", "nonsense");
    CHECK(f.head("main") == chain[4]->id);
    put_text(*f.remote, "hfdelta/refs/main/head", std::string(10'000, '0'));
    CHECK(f.head("main") == chain[4]->id);
    REQUIRE(f.remote->remove("hfdelta/refs/main/head").ok());
    CHECK(f.head("main") == chain[4]->id);
  }

  TEST_CASE("a hint that is far behind leads to the newest all the same") {
    Fixture f;
    const auto chain = f.publish_chain(40);
    put_text(*f.remote, "hfdelta/refs/main/head", "0000000001 " + chain[0]->id.hex() + "\n");
    CHECK(f.head("main") == chain[39]->id);
  }

  TEST_CASE("claims with the version in the name are read too, the earliest of a number first") {
    Fixture f;
    const auto chain = f.publish_chain(2);
    put_text(*f.remote, "hfdelta/refs/other/0000000001-" + chain[0]->id.hex(), "");
    CHECK(f.head("other") == chain[0]->id);
    put_text(*f.remote, "hfdelta/refs/other/0000000002-" + chain[1]->id.hex(), "");
    CHECK(f.head("other") == chain[1]->id);
    CHECK(f.bucket.head("other")->value().sequence == 2);
    put_text(*f.remote, "hfdelta/refs/other/0000000003-notahash", "");
    CHECK(f.head("other") == chain[1]->id);
  }

  TEST_CASE("a claim that holds no version id is corrupt") {
    Fixture f;
    put_text(*f.remote, "hfdelta/refs/main/0000000001", "hello");
    const auto head = f.bucket.head("main");
    REQUIRE_FALSE(head.ok());
    CHECK(head.error().code == ErrorCode::corrupt);
    CHECK(head.error().object == "hfdelta/refs/main/0000000001");
  }

  TEST_CASE("claiming twice is fine for one version and a conflict for another") {
    Fixture f;
    const auto chain = f.publish_chain(1);
    CHECK(f.bucket.claim("main", 1, chain[0]->id).ok());
    const auto lost = f.bucket.claim("main", 1, base::version_id(base::as_bytes("other")));
    REQUIRE_FALSE(lost.ok());
    CHECK(lost.error().code == ErrorCode::conflict);
    CHECK(f.head("main") == chain[0]->id);
    CHECK_FALSE(f.bucket.claim("bad/../ref", 1, chain[0]->id).ok());
    CHECK_FALSE(f.bucket.claim("main", 10'000'000'000, chain[0]->id).ok());
  }

  TEST_CASE("of two threads that claim one number exactly one wins") {
    Fixture f;
    for (std::uint64_t round = 1; round <= 30; ++round) {
      std::atomic<int> won{0};
      std::atomic<int> conflicts{0};
      const auto writer = [&](const std::string& name) {
        const auto claimed = f.bucket.claim("main", round, base::version_id(base::as_bytes(name)));
        won += claimed.ok() ? 1 : 0;
        conflicts += !claimed.ok() && claimed.error().code == ErrorCode::conflict ? 1 : 0;
      };
      std::thread one([&] { writer("one" + std::to_string(round)); });
      std::thread two([&] { writer("two" + std::to_string(round)); });
      one.join();
      two.join();
      CHECK(won == 1);
      CHECK(conflicts == 1);
    }
    CHECK(f.bucket.head("main")->value().sequence == 30);
  }

  TEST_CASE("writing to a remote without put-if-absent is refused for now") {
    class NoClaims final : public remote::Remote {
     public:
      const std::string& uri() const override { return uri_; }
      remote::Capabilities capabilities() const override { return {}; }
      void read(const std::string&, ByteRange, base::Deadline, remote::ReadDone done) override {
        done(Error{ErrorCode::not_found, "no"});
      }
      Result<remote::ObjectInfo> head(const std::string&) override {
        return Error{ErrorCode::not_found, "no"};
      }
      Result<std::vector<remote::ObjectInfo>> list(const std::string& prefix) override {
        remote::ObjectInfo late{prefix + "/0000000004-" + test::content_of("late").hex(), 0, 9};
        remote::ObjectInfo early{prefix + "/0000000004-" + test::content_of("early").hex(), 0, 5};
        return std::vector<remote::ObjectInfo>{early, late};
      }
      Result<void> put(const std::string&, base::ReadableBytes&) override { return {}; }
      Result<void> put_if_absent(const std::string&, base::ByteView) override { return {}; }
      std::optional<std::string> local_path(const std::string&) const override { return {}; }
      Result<void> remove(const std::string&) override { return {}; }
      std::unique_ptr<remote::Watch> watch(const std::string&, std::function<void()>) override {
        return nullptr;
      }

     private:
      std::string uri_ = "test://no-claims";
    };
    NoClaims remote;
    Bucket bucket(remote, std::chrono::seconds(1));
    CHECK(bucket.claim("main", 5, VersionId{}).error().code == ErrorCode::unsupported);
    CHECK(bucket.head("main")->value().version.bytes == test::content_of("early").bytes);
  }

  TEST_CASE("refs are listed with tags, without those that have no claim") {
    Fixture f;
    const auto chain = f.publish_chain(1);
    REQUIRE(f.bucket.claim("tags/v1.0", 1, chain[0]->id).ok());
    REQUIRE(f.bucket.claim("a/b", 1, chain[0]->id).ok());
    put_text(*f.remote, "hfdelta/refs/only-hint/head", "x");
    CHECK(*f.bucket.refs() == std::vector<std::string>{"a/b", "main", "tags/v1.0"});
    REQUIRE(f.bucket.claim("a", 1, chain[0]->id).ok());
    REQUIRE(f.bucket.remove_ref("a").ok());
    CHECK(*f.bucket.refs() == std::vector<std::string>{"a/b", "main", "tags/v1.0"});
    CHECK_FALSE(f.bucket.head("a")->has_value());
    REQUIRE(f.bucket.remove_ref("tags/v1.0").ok());
    CHECK(*f.bucket.refs() == std::vector<std::string>{"a/b", "main"});
  }

  TEST_CASE("a manifest is what its id says, or corrupt") {
    Fixture f;
    const auto chain = f.publish_chain(1);
    const std::string name = version_object(chain[0]->id);
    Bucket fresh(*f.remote, std::chrono::seconds(30));
    REQUIRE(fresh.version(chain[0]->id).ok());
    put_text(*f.remote, name, test::text_of(*f.remote, name) + " ");
    Bucket cold(*f.remote, std::chrono::seconds(30));
    const auto damaged = cold.version(chain[0]->id);
    REQUIRE_FALSE(damaged.ok());
    CHECK(damaged.error().code == ErrorCode::corrupt);
    CHECK(damaged.error().object == name);
    CHECK(f.bucket.version(chain[0]->id).ok());  // from memory
    CHECK(cold.version(VersionId{}).error().code == ErrorCode::not_found);
  }

  TEST_CASE("a manifest that could not be read is not written") {
    Fixture f;
    Manifest manifest;
    manifest.ref = "main";
    manifest.sequence = 1;
    manifest.files = {test::manifest_file("a", "content that is not listed")};
    CHECK_FALSE(f.bucket.put_version(manifest).ok());
    CHECK(f.bucket.version_ids()->empty());
  }

  TEST_CASE("a version is found by everything that may name it") {
    Fixture f;
    const auto chain = f.publish_chain(4);
    REQUIRE(f.bucket.claim("tags/best", 1, chain[1]->id).ok());
    REQUIRE(f.bucket.claim("variant", 3, chain[2]->id).ok());
    const std::string hex = chain[2]->id.hex();
    const auto is = [&](const std::string& text, const VersionPtr& version) {
      const auto id = f.bucket.resolve(text, "main");
      INFO("version " << text);
      REQUIRE(id.ok());
      CHECK(*id == version->id);
    };
    is(hex, chain[2]);
    is(hex.substr(0, 6), chain[2]);
    is("head", chain[3]);
    is("", chain[3]);
    is("head~0", chain[3]);
    is("head~3", chain[0]);
    is("v2", chain[1]);
    is("best", chain[1]);
    is("tags/best", chain[1]);
    is("variant", chain[2]);
    is("variant~1", chain[1]);
    is("main", chain[3]);
    is("~1", chain[2]);
    for (const char* text :
         {"head~4", "v9", "v0", "nothing", "abc", "head~x", "../x", "v", "zzzzzz"}) {
      INFO("version " << text);
      CHECK(f.resolve_error(text) == ErrorCode::not_found);
    }
    CHECK(f.resolve_error(std::string(64, '0')) == ErrorCode::not_found);
  }

  TEST_CASE("a prefix that several ids share is a usage error") {
    Fixture f;
    put_text(*f.remote, "hfdelta/versions/abcdef" + std::string(58, '0') + ".json", "");
    put_text(*f.remote, "hfdelta/versions/abcdef" + std::string(58, '1') + ".json", "");
    put_text(*f.remote, "hfdelta/versions/not-a-version.json", "");
    CHECK(f.resolve_error("abcdef") == ErrorCode::invalid_argument);
    CHECK(f.bucket.resolve("ABCDEF0", "main").ok());
  }

  TEST_CASE("history goes from the head along parents, newest first, and is bounded") {
    Fixture f;
    const auto chain = f.publish_chain(5);
    const auto all = f.bucket.history("main", 100);
    REQUIRE(all.ok());
    REQUIRE(all->size() == 5);
    CHECK(all->front()->id == chain[4]->id);
    CHECK(all->back()->id == chain[0]->id);
    CHECK(f.bucket.history("main", 2)->size() == 2);
    // Older versions may be collected: history ends there. A missing head is an error.
    REQUIRE(f.remote->remove(version_object(chain[1]->id)).ok());
    Bucket cold(*f.remote, std::chrono::seconds(30));
    CHECK(cold.history("main", 100)->size() == 3);
    REQUIRE(f.remote->remove(version_object(chain[4]->id)).ok());
    Bucket colder(*f.remote, std::chrono::seconds(30));
    CHECK(colder.history("main", 100).error().code == ErrorCode::not_found);
  }
}

}  // namespace
}  // namespace hfd::lineage
