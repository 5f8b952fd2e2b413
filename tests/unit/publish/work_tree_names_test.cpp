// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include <doctest/doctest.h>

#include "work_tree_fixture.hpp"

namespace hfd::publish {
namespace {

using test::Staging;
using test::TempFolder;

template <class T>
int errno_of(const Result<T>& result) {
  return result.ok() ? 0 : result.error().os_errno;
}

TEST_SUITE("publish/work_tree_names") {
  TEST_CASE("a created file is found by name, by id and in its folder") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->make_folder(staging.new_node("d")).ok());
    const Node node = staging.create("d/f", "hello");
    CHECK(node.bytes == 5);
    CHECK_FALSE(node.writing);
    CHECK(node.place == Place::staged);
    CHECK(staging.at("d/f").id == node.id);
    CHECK(staging->get(node.id)->name == "f");
    const auto listed = staging->list(staging.folder("d"), "", 10);
    REQUIRE(listed.ok());
    REQUIRE(listed->size() == 1);
    CHECK(listed->front().id == node.id);
    CHECK(staging.staged_text(node.id) == "hello");
  }

  TEST_CASE("list pages through a folder in name order") {
    const TempFolder temp;
    Staging staging(temp / "s");
    for (int i = 0; i < 10; ++i) {
      staging.create(std::string(1, static_cast<char>('a' + i)), "");
    }
    std::string seen;
    std::string after;
    while (true) {
      const auto page = staging->list(root_node, after, 3);
      REQUIRE(page.ok());
      if (page->empty()) {
        break;
      }
      for (const Node& node : *page) {
        seen += node.name;
      }
      after = page->back().name;
    }
    CHECK(seen == "abcdefghij");
  }

  TEST_CASE("errno values are those of POSIX") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->make_folder(staging.new_node("d")).ok());
    REQUIRE(staging->make_folder(staging.new_node("d/e")).ok());
    staging.create("f", "x");
    const std::string long_name(256, 'y');
    CHECK(errno_of(staging->lookup(root_node, "nothing")) == ENOENT);
    CHECK(errno_of(staging->lookup(root_node, long_name)) == ENAMETOOLONG);
    CHECK(errno_of(staging->lookup(staging.at("f").id, "x")) == ENOTDIR);
    CHECK(errno_of(staging->get(12345)) == ESTALE);
    CHECK(errno_of(staging->create_file({root_node, long_name, 0644, 0, 0})) == ENAMETOOLONG);
    CHECK(staging->create_file({root_node, std::string(255, 'y'), 0644, 0, 0}).ok());
    CHECK(errno_of(staging->create_file(staging.new_node("f"))) == EEXIST);
    CHECK(errno_of(staging->make_folder(staging.new_node("f"))) == EEXIST);
    CHECK(errno_of(staging->create_file({root_node, ".hfdelta", 0644, 0, 0})) == EPERM);
    CHECK(staging->create_file(staging.new_node("d/.hfdelta")).ok());
    CHECK(errno_of(staging->create_file({staging.at("f").id, "x", 0644, 0, 0})) == ENOTDIR);
    CHECK(errno_of(staging->unlink(root_node, "d", false)) == EISDIR);
    CHECK(errno_of(staging->unlink(root_node, "nothing", false)) == ENOENT);
    CHECK(errno_of(staging->remove_folder(root_node, "d")) == ENOTEMPTY);
    CHECK(errno_of(staging->remove_folder(root_node, "f")) == ENOTDIR);
    CHECK(errno_of(staging.rename("f", "d")) == EISDIR);
    CHECK(errno_of(staging.rename("d", "f")) == ENOTDIR);
    CHECK(errno_of(staging.rename("d", "d/e/x")) == EINVAL);
    CHECK(errno_of(staging.rename("d/e", "d")) == ENOTEMPTY);
    CHECK(errno_of(staging.rename("nothing", "d")) == ENOENT);
    CHECK(errno_of(staging.rename("f", "d", false, RenameMode::no_replace)) == EEXIST);
    CHECK(errno_of(staging.rename("f", "g", false, RenameMode::exchange)) == ENOENT);
    CHECK(errno_of(staging.rename("d", "d/e", false, RenameMode::exchange)) == EINVAL);
    CHECK(errno_of(staging.rename("f", ".hfdelta")) == EPERM);
  }

  TEST_CASE("names are bytes and never merged") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const std::vector<std::string> names = {"Model",    "model",     "e\xcc\x81", "\xc3\xa9",
                                            "\xff\xfe", "new\nline", " ",         "trail "};
    for (const std::string& name : names) {
      staging.create(name, name);
    }
    for (const std::string& name : names) {
      CHECK(staging.staged_text(staging.at(name).id) == name);
    }
  }

  TEST_CASE("rename over a file drops the replaced bytes unless they are open") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const Node old = staging.create("target", "old");
    staging.create("new", "new");
    REQUIRE(staging.rename("new", "target", true).ok());
    CHECK(staging.at("new").id == 0);
    CHECK(staging.staged_text(staging.at("target").id) == "new");
    CHECK(staging.staged_text(old.id) == "old");
    CHECK(staging->get(old.id)->parent == 0);
    staging->drop(old.id);
    CHECK(errno_of(staging->get(old.id)) == ESTALE);
    staging.create("third", "3");
    const NodeId second = staging.at("target").id;
    REQUIRE(staging.rename("third", "target").ok());
    CHECK(errno_of(staging->get(second)) == ESTALE);
    staging.reopen();
    CHECK(staging.data_file_count() == 1);
  }

  TEST_CASE("drop leaves a node with a name alone") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const Node node = staging.create("f", "x");
    staging->drop(node.id);
    staging->drop(root_node);
    CHECK(staging.staged_text(node.id) == "x");
  }

  TEST_CASE("a folder moves with everything below it") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->make_folder(staging.new_node("tmp-c")).ok());
    REQUIRE(staging->make_folder(staging.new_node("tmp-c/sub")).ok());
    const Node node = staging.create("tmp-c/sub/w", "w");
    REQUIRE(staging->make_folder(staging.new_node("c-1")).ok());
    REQUIRE(staging.rename("tmp-c", "c-1").ok());
    CHECK(staging.at("c-1/sub/w").id == node.id);
    CHECK(staging.paths() == "c-1/sub/w ");
  }

  TEST_CASE("exchange swaps two names of any kind") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const Node file = staging.create("a", "x");
    REQUIRE(staging->make_folder(staging.new_node("b")).ok());
    REQUIRE(staging.rename("a", "b", false, RenameMode::exchange).ok());
    CHECK(staging.at("b").id == file.id);
    CHECK(staging.at("a").kind == NodeKind::folder);
  }

  TEST_CASE("a removed folder takes no new names and is forgotten at drop") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->make_folder(staging.new_node("d")).ok());
    const NodeId id = staging.at("d").id;
    REQUIRE(staging->remove_folder(root_node, "d").ok());
    CHECK(errno_of(staging->create_file({id, "x", 0644, 0, 0})) == ENOENT);
    CHECK(staging->get(id).ok());
    staging->drop(id);
    CHECK_FALSE(staging->get(id).ok());
  }

  TEST_CASE("a change of names is seen in the times of the folder") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->make_folder(staging.new_node("d")).ok());
    const Node before = staging.at("d");
    staging.create("d/f", "");
    const Node after = staging.at("d");
    CHECK(after.mtime > before.mtime);
    CHECK(after.ctime > before.ctime);
    REQUIRE(staging.unlink("d/f").ok());
    CHECK(staging.at("d").mtime > after.mtime);
  }

  TEST_CASE("symlinks keep their target and its length as size") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto link = staging->make_symlink(staging.new_node("l", 0777), "../x");
    REQUIRE(link.ok());
    staging.reopen();
    CHECK(staging.at("l").symlink_target == "../x");
    CHECK(staging.at("l").bytes == 4);
    CHECK(staging.at("l").kind == NodeKind::symlink);
  }

  TEST_CASE("the junk list is what it says and nothing more") {
    for (const char* junk :
         {".tmpAbCdEf", ".tmpvTwVQZ", "file.safetensors.tmp", "file~", "tilde~", ".file.swp",
          ".a.swx", ".a.swo", "4913", "#file#", ".#lock", ".nfs0001", ".fuse_hidden0001",
          ".DS_Store", "._x", "model.safetensors.incomplete", "a.part", ".~lock.x.odt#",
          "Thumbs.db"}) {
      CHECK_MESSAGE(is_junk_name(junk), junk);
    }
    for (const char* kept :
         {"-dash.txt", ".hidden",     "..two",       "lost+found",    "trail ", ".tmp",
          ".tmpAbCdE", ".tmpAbCdEfG", ".tmpAb-dEf",  "tmpAbCdEf",     "~",      "#",
          "##",        "hash#1.txt",  "poetry.lock", ".swp",          "a.swp",  "_x.txt",
          "part",      "4913.txt",    "empty.bin",   ".config.backup"}) {
      CHECK_MESSAGE(!is_junk_name(kept), kept);
    }
  }
}

}  // namespace
}  // namespace hfd::publish
