// SPDX-License-Identifier: Apache-2.0
#include "vfs/open_files.hpp"

#include <doctest/doctest.h>

namespace hfd::vfs {
namespace {

HandleId open(OpenFiles& files, publish::NodeId id) {
  Handle handle;
  handle.inode = id;
  handle.node = files.open_node(id);
  return files.add(std::move(handle));
}

TEST_SUITE("vfs/open_files") {
  TEST_CASE("handles of one node share its state, those of others do not") {
    OpenFiles files;
    const HandleId first = open(files, 7);
    const HandleId second = open(files, 7);
    const HandleId other = open(files, 8);
    CHECK(first != second);
    CHECK(files.find(first)->node == files.find(second)->node);
    CHECK(files.find(first)->node != files.find(other)->node);
    CHECK(files.find_node(7) == files.find(first)->node);
  }

  TEST_CASE("a node is open until its last handle is removed") {
    OpenFiles files;
    const HandleId first = open(files, 7);
    const HandleId second = open(files, 7);
    CHECK(files.remove(first) != nullptr);
    CHECK(files.is_open(7));
    CHECK(files.remove(second) != nullptr);
    CHECK_FALSE(files.is_open(7));
    CHECK(files.find_node(7) == nullptr);
  }

  TEST_CASE("an operation that still holds a node keeps it open after the last handle") {
    OpenFiles files;
    const HandleId id = open(files, 7);
    OpenNodePtr held = files.find_node(7);
    files.remove(id);
    CHECK(files.is_open(7));
    CHECK(files.open_node(7) == held);
    held.reset();
    CHECK_FALSE(files.is_open(7));
  }

  TEST_CASE("numbers that were never given out or are released name nothing") {
    OpenFiles files;
    CHECK(files.find(1) == nullptr);
    CHECK(files.remove(1) == nullptr);
    const HandleId id = open(files, 7);
    REQUIRE(files.remove(id) != nullptr);
    CHECK(files.find(id) == nullptr);
    CHECK(files.remove(id) == nullptr);
  }

  TEST_CASE("numbers of handles are not used again") {
    OpenFiles files;
    const HandleId first = open(files, 7);
    files.remove(first);
    CHECK(open(files, 7) != first);
  }

  TEST_CASE("a node opened anew starts with a state of its own") {
    OpenFiles files;
    const HandleId first = open(files, 7);
    {
      const OpenNodePtr node = files.find_node(7);
      const base::Lock lock(node->mutex);
      node->dirty = true;
    }
    files.remove(first);
    open(files, 7);
    const OpenNodePtr node = files.find_node(7);
    const base::Lock lock(node->mutex);
    CHECK_FALSE(node->dirty);
  }

  TEST_CASE("what a handle was opened with stays as it was") {
    OpenFiles files;
    Handle handle;
    handle.inode = 3;
    handle.entries = {{"a", 4, NodeKind::file}};
    const HandlePtr found = files.find(files.add(std::move(handle)));
    REQUIRE(found != nullptr);
    CHECK(found->inode == 3);
    REQUIRE(found->entries.size() == 1);
    CHECK(found->entries[0].name == "a");
  }

  TEST_CASE("very many nodes that come and go leave the open ones alone") {
    OpenFiles files;
    const HandleId kept = open(files, 1);
    for (publish::NodeId id = 2; id < 1000; ++id) {
      static_cast<void>(files.open_node(id));  // let go at once
    }
    CHECK(files.is_open(1));
    CHECK_FALSE(files.is_open(500));
    CHECK(files.find_node(1) == files.find(kept)->node);
  }
}

}  // namespace
}  // namespace hfd::vfs
