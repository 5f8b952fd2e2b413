// SPDX-License-Identifier: Apache-2.0
#include "vfs/version_tree.hpp"

#include <doctest/doctest.h>

#include "publish/work_tree_fixture.hpp"

namespace hfd::vfs {
namespace {

using Kind = lineage::FileEntry::Kind;

lineage::VersionPtr version_of_entries() {
  lineage::FileEntry link = test::file_entry("a/link", "");
  link.kind = Kind::symlink;
  link.symlink_target = "d";
  lineage::FileEntry empty = test::file_entry("empty", "");
  empty.kind = Kind::folder;
  return std::make_shared<const lineage::Version>(
      test::version_of(1, {test::file_entry("a/b/c", "cc"), test::file_entry("a/d", "d"), link, empty,
                           test::file_entry("a-b", "beside"), test::file_entry("z", "z")}));
}

/// Index of a path, 0 when there is none.
std::uint32_t find(const VersionTree& tree, const std::vector<std::string>& path) {
  std::uint32_t at = 0;
  for (const std::string& name : path) {
    at = tree.child(at, name);
    if (at == 0) {
      return 0;
    }
  }
  return at;
}

TEST_SUITE("vfs/version_tree") {
  TEST_CASE("files are found by their path, with their entries") {
    const VersionTree tree(version_of_entries());
    const std::uint32_t file = find(tree, {"a", "b", "c"});
    REQUIRE(file != 0);
    REQUIRE(tree.node(file).entry != nullptr);
    CHECK(tree.node(file).entry->path == "a/b/c");
    CHECK(tree.node(file).name == "c");
    CHECK_FALSE(tree.node(file).is_folder());
    CHECK(tree.node(find(tree, {"a", "link"})).entry->symlink_target == "d");
  }

  TEST_CASE("folders that paths imply are there once and have no entry") {
    const VersionTree tree(version_of_entries());
    const std::uint32_t a = find(tree, {"a"});
    REQUIRE(a != 0);
    CHECK(tree.node(a).is_folder());
    CHECK(tree.node(a).entry == nullptr);
    CHECK(tree.node(a).parent == 0);
    CHECK(tree.node(a).children.size() == 3);
    CHECK(tree.node(find(tree, {"a", "b"})).parent == a);
  }

  TEST_CASE("an empty folder is a folder with an entry") {
    const VersionTree tree(version_of_entries());
    const std::uint32_t empty = find(tree, {"empty"});
    REQUIRE(empty != 0);
    CHECK(tree.node(empty).is_folder());
    CHECK(tree.node(empty).entry != nullptr);
    CHECK(tree.node(empty).children.empty());
  }

  TEST_CASE("children are in bytewise order") {
    const VersionTree tree(version_of_entries());
    std::string names;
    for (const std::uint32_t index : tree.node(0).children) {
      names += tree.node(index).name + " ";
    }
    CHECK(names == "a a-b empty z ");
  }

  TEST_CASE("names that are not there, parts of names and paths are not found") {
    const VersionTree tree(version_of_entries());
    for (const char* name : {"", "b", "A", "a/b", "aa", "zz", ".", ".."}) {
      CHECK(tree.child(0, name) == 0);
    }
    CHECK(tree.child(find(tree, {"z"}), "z") == 0);
  }

  TEST_CASE("a version without files is an empty root") {
    const VersionTree tree(std::make_shared<const lineage::Version>(
        test::version_of(1, std::vector<lineage::FileEntry>{})));
    CHECK(tree.node(0).is_folder());
    CHECK(tree.node(0).children.empty());
    CHECK(tree.child(0, "a") == 0);
  }
}

}  // namespace
}  // namespace hfd::vfs
