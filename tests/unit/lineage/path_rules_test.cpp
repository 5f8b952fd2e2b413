// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "lineage/manifest.hpp"

namespace hfd::lineage {
namespace {

using namespace std::string_view_literals;

TEST_SUITE("lineage/path_rules") {
  TEST_CASE("paths stay in the tree") {
    for (const std::string_view path : {"a"sv, "a/b"sv, ".a"sv, "..a"sv, "a b"sv, "\xff"sv,
                                        ".hfdeltax"sv, "x/.hfdelta"sv, "new\nline"sv}) {
      CHECK(is_valid_path(path));
    }
    for (const std::string_view path :
         {""sv, "/"sv, "/a"sv, "a/"sv, "a//b"sv, "."sv, ".."sv, "a/./b"sv, "a/../b"sv, ".hfdelta"sv,
          ".hfdelta/versions"sv, "a\0b"sv}) {
      CHECK_FALSE(is_valid_path(path));
    }
    CHECK(is_valid_path(std::string(255, 'n')));
    CHECK_FALSE(is_valid_path(std::string(256, 'n')));
    std::string deep = "a";
    while (deep.size() < 4095) {
      deep += "/a";
    }
    CHECK(is_valid_path(deep));
    CHECK_FALSE(is_valid_path(deep + "/a"));
  }

  TEST_CASE("a symlink may lead anywhere in the tree, not out of it") {
    CHECK(is_inside_symlink("a", "b"));
    CHECK(is_inside_symlink("a", "./b"));
    CHECK(is_inside_symlink("d/a", "../b"));
    CHECK(is_inside_symlink("d/e/a", "../../b/c"));
    CHECK(is_inside_symlink("d/a", ".."));
    CHECK_FALSE(is_inside_symlink("a", ".."));
    CHECK_FALSE(is_inside_symlink("a", "../b"));
    CHECK_FALSE(is_inside_symlink("d/a", "../../b"));
    CHECK_FALSE(is_inside_symlink("a", "/b"));
    CHECK_FALSE(is_inside_symlink("a", ""));
    CHECK_FALSE(is_inside_symlink("a", "b\0c"sv));
  }

  TEST_CASE("a symlink may not climb after a name: that name could be a symlink") {
    CHECK_FALSE(is_inside_symlink("a", "b/.."));
    CHECK_FALSE(is_inside_symlink("d/a", "x/../y"));
  }

  TEST_CASE("refs are segments of plain characters") {
    for (const std::string_view ref : {"main"sv, "tags/v1.0"sv, "a/b-c/d_e"sv, "1a"sv, "heads"sv}) {
      CHECK(is_valid_ref(ref));
    }
    for (const std::string_view ref :
         {""sv, "head"sv, "a/head"sv, "123"sv, "a/0000000001"sv, "a//b"sv, "/a"sv, "a/"sv, ".."sv,
          "a/."sv, "a b"sv, "a~1"sv, "\xc3\xbc"sv}) {
      CHECK_FALSE(is_valid_ref(ref));
    }
    CHECK(is_valid_ref(std::string(200, 'r')));
    CHECK_FALSE(is_valid_ref(std::string(201, 'r')));
  }
}

}  // namespace
}  // namespace hfd::lineage
