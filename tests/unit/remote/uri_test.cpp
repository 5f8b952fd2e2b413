// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <stdlib.h>

#include "remote/object_name.hpp"
#include "remote/remote.hpp"

namespace hfd::remote {
namespace {

ParsedUri parsed(const std::string& text) {
  auto uri = parse_uri(text);
  INFO("uri " << text << (uri.ok() ? std::string() : uri.error().message));
  REQUIRE(uri.ok());
  return *uri;
}

TEST_SUITE("remote/uri") {
  TEST_CASE("a path is a folder, made absolute and clean") {
    CHECK(parsed("/a/b/../c//d/.").path == "/a/c/d");
    CHECK(parsed("/a/b/").canonical == "file:///a/b");
    CHECK(parsed("/").path == "/");
    char* here = ::realpath(".", nullptr);
    REQUIRE(here != nullptr);
    CHECK(parsed("./x").path == std::string(here) + "/x");
    CHECK(parsed(".").path == here);
    ::free(here);
  }

  TEST_CASE("~ is the home folder, that of others has to be written out") {
    const char* home = ::getenv("HOME");
    REQUIRE(home != nullptr);
    CHECK(parsed("~/m").path == std::string(home) + "/m");
    CHECK_FALSE(parse_uri("~someone/m").ok());
  }

  TEST_CASE("a file URI comes back as the path it was made from, whatever its bytes") {
    for (const std::string path : {"/a b/c%d", "/x#y?z", "/\xff\xfe/n", "/n\nl", "/m\"q", "/ü"}) {
      const ParsedUri first = parsed(path);
      const ParsedUri again = parsed(first.canonical);
      CHECK(first.path == path);
      CHECK(again.path == path);
      CHECK(again.canonical == first.canonical);
    }
    CHECK(parsed("file://localhost/a").path == "/a");
    CHECK(parsed("file:///a%20b").path == "/a b");
  }

  TEST_CASE("exactly one slash means a Hub repo") {
    CHECK(parsed("models/foo").kind == UriKind::hub_repo);
    CHECK(parsed("models/foo").canonical == "hf://models/models/foo");
    CHECK(parsed("hf://models/models/foo").canonical == "hf://models/models/foo");
    CHECK(parsed("Qwen/Qwen3-0.6B").canonical == "hf://Qwen/Qwen3-0.6B");
    CHECK(parsed("hf://models/Qwen/Qwen3-0.6B@main").canonical == "hf://Qwen/Qwen3-0.6B@main");
    CHECK(parsed("hf://datasets/a/b/sub/x").canonical == "hf://datasets/a/b/sub/x");
    CHECK(parsed("hf://buckets/a/b/pre/fix/").kind == UriKind::hub_bucket);
    CHECK(parsed("hf://buckets/a/b/pre/fix/").canonical == "hf://buckets/a/b/pre/fix");
  }

  TEST_CASE("other schemes are told apart, and passwords do not survive") {
    CHECK(parsed("s3://bucket/pre/").canonical == "s3://bucket/pre");
    CHECK(parsed("https://user:secret@host:8080/x").canonical == "https://host:8080/x");
    CHECK(parsed("http://h").kind == UriKind::http);
  }

  TEST_CASE("nonsense is a usage error that says what to write") {
    for (const std::string text : {"", "foo", "a/b/c", "a/", "ftp://x/y", "hf://x", "hf://a b/c",
                                   "s3://", "s3:///x", "http://", "file://host/x", "file:///a%2",
                                   "file:///a%zz", "file:///a%00b", "a/b@", "hf://../x", "~x"}) {
      const auto uri = parse_uri(text);
      INFO("uri " << text);
      REQUIRE_FALSE(uri.ok());
      CHECK(uri.error().code == ErrorCode::invalid_argument);
      CHECK(uri.error().hint.find("./") != std::string::npos);
    }
    CHECK_FALSE(parse_uri(std::string("/a\0b", 4)).ok());
    CHECK_FALSE(parse_uri(std::string(10'000, 'a')).ok());
  }

  TEST_CASE("kinds that come later are refused by name") {
    for (const char* text : {"a/b", "hf://buckets/a/b", "s3://b/p", "https://h/p"}) {
      const auto remote = open_remote(parsed(text), true);
      REQUIRE_FALSE(remote.ok());
      CHECK(remote.error().code == ErrorCode::unsupported);
      CHECK(remote.error().object == parsed(text).canonical);
      CHECK(remote.error().message.find("come with a later version") != std::string::npos);
    }
  }

  TEST_CASE("object names cannot leave the root") {
    for (const std::string_view name : {"a", "a/b.c", "..a", "a..", "...", " "}) {
      CHECK(check_object_name(name).ok());
    }
    using namespace std::string_view_literals;
    for (const std::string_view name :
         {""sv, "/a"sv, "a/"sv, "a//b"sv, "."sv, ".."sv, "a/../b"sv, "../a"sv, "a/."sv, "a\0b"sv}) {
      CHECK_FALSE(check_object_name(name).ok());
    }
  }
}

}  // namespace
}  // namespace hfd::remote
