// SPDX-License-Identifier: Apache-2.0
#include "api/history.hpp"

#include <doctest/doctest.h>

#include "api/api_fixture.hpp"

namespace hfd::api {
namespace {

using test::ApiFixture;
using test::Tree;

TEST_SUITE("api/history") {
  TEST_CASE("the log is newest first, with tags and sizes") {
    ApiFixture f;
    const auto first = f.publish(Tree{{"a", "one"}});
    const auto second = f.publish(Tree{{"a", "two"}});
    const auto session = f.open();
    REQUIRE(set_tag(*session, "best", "v1").ok());
    const auto log = read_log(*session, 10);
    REQUIRE(log.ok());
    REQUIRE(log->size() == 2);
    CHECK((*log)[0].id == second.outcome.version->id);
    CHECK((*log)[0].meta_bytes == second.outcome.meta_bytes);
    CHECK((*log)[0].tags.empty());
    CHECK((*log)[1].tags == std::vector<std::string>{"best"});
    CHECK((*log)[1].version->manifest.parent == std::nullopt);
    CHECK(read_log(*session, 1)->size() == 1);
    CHECK((*log)[1].id == first.outcome.version->id);
  }

  TEST_CASE("a damaged manifest is shown as such and ends the log") {
    ApiFixture f;
    const auto first = f.publish(Tree{{"a", "one"}});
    f.publish(Tree{{"a", "two"}});
    test::put_text(*test::open_folder_remote(f.bucket),
                   lineage::version_object(first.outcome.version->id), "{}");
    const auto session = f.open();
    const auto log = read_log(*session, 10);
    REQUIRE(log.ok());
    REQUIRE(log->size() == 2);
    CHECK((*log)[0].bad.empty());
    CHECK_FALSE((*log)[1].bad.empty());
    CHECK_FALSE((*log)[1].version);
  }

  TEST_CASE("a base has one entry, itself; an empty bucket none") {
    ApiFixture f;
    test::write_tree(f.source, Tree{{"a", "x"}});
    auto base = Session::open({.source = f.source});
    REQUIRE(base.ok());
    const auto log = read_log(**base, 10);
    REQUIRE(log->size() == 1);
    CHECK((*log)[0].version->manifest.sequence == 0);
    auto empty = Session::open({.source = f.bucket, .as_bucket = true, .create = true});
    REQUIRE(empty.ok());
    CHECK(read_log(**empty, 10)->empty());
  }

  TEST_CASE("tags are made, moved, listed and taken away") {
    ApiFixture f;
    const auto first = f.publish(Tree{{"a", "one"}});
    const auto second = f.publish(Tree{{"a", "two"}});
    const auto session = f.open();
    CHECK(*set_tag(*session, "best", "") == second.outcome.version->id);
    CHECK(*set_tag(*session, "best", "head~1") == first.outcome.version->id);
    CHECK(*set_tag(*session, "best", "v1") == first.outcome.version->id);
    CHECK(*set_tag(*session, "exp/lr-1", "v2") == second.outcome.version->id);
    const auto tags = list_tags(*session);
    REQUIRE(tags->size() == 2);
    CHECK((*tags)[0] == std::pair(std::string("best"), first.outcome.version->id));
    CHECK(*session->bucket().resolve("best", "main") == first.outcome.version->id);
    CHECK(delete_tag(*session, "best").ok());
    CHECK(delete_tag(*session, "best").error().code == ErrorCode::not_found);
    CHECK(list_tags(*session)->size() == 1);
    CHECK(set_tag(*session, "x", "nowhere").error().code == ErrorCode::not_found);
  }

  TEST_CASE("a tag may not be called what means something else") {
    ApiFixture f;
    f.publish(Tree{{"a", "one"}});
    const auto session = f.open();
    for (const char* name : {"head", "v7", "abcdef", "123", "..", "", "a b", "x~1"}) {
      INFO("name " << name);
      CHECK(set_tag(*session, name, "").error().code == ErrorCode::invalid_argument);
    }
    CHECK(set_tag(*session, "v1.0", "").ok());
    CHECK(set_tag(*session, "abc", "").ok());
  }
}

}  // namespace
}  // namespace hfd::api
