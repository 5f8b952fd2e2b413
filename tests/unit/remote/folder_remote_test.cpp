// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "remote/folder_fixture.hpp"

namespace hfd::remote {
namespace {

using test::open_folder_remote;
using test::put_text;
using test::soon;
using test::text_of;

ErrorCode code_of_read(Remote& remote, const std::string& name, ByteRange range) {
  const auto bytes = read_blocking(remote, name, range, soon());
  REQUIRE_FALSE(bytes.ok());
  return bytes.error().code;
}

TEST_SUITE("remote/folder_remote") {
  TEST_CASE("a missing folder is an error unless it may be made") {
    const test::TempFolder folder;
    const auto uri = parse_uri(folder / "new");
    REQUIRE(uri.ok());
    const auto missing = open_remote(*uri, false);
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::not_found);
    CHECK(missing.error().object == folder / "new");
    const auto made = open_remote(*uri, true);
    REQUIRE(made.ok());
    CHECK((*made)->list("hfdelta")->empty());
    CHECK((*made)->capabilities().writable);
    put_text(**made, "hfdelta/refs/main/0000000001", "x");
    CHECK(text_of(**made, "hfdelta/refs/main/0000000001") == "x");
  }

  TEST_CASE("a file is no folder") {
    const test::TempFolder folder;
    REQUIRE(base::replace_file(folder / "f", {}).ok());
    const auto opened = open_remote(*parse_uri(folder / "f"), true);
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == ErrorCode::invalid_argument);
  }

  TEST_CASE("a read gives exactly its range, and counts") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    put_text(*remote, "a/b", "0123456789");
    const auto middle = read_blocking(*remote, "a/b", {3, 4}, soon());
    REQUIRE(middle.ok());
    CHECK(base::as_text(*middle) == "3456");
    CHECK(read_blocking(*remote, "a/b", {10, 0}, soon())->empty());
    CHECK(remote->counters().bytes_in == 4);
    CHECK(remote->counters().bytes_out == 10);
    CHECK(remote->counters().requests >= 3);
  }

  TEST_CASE("what cannot be read says why and names the object") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    put_text(*remote, "a", "0123456789");
    CHECK(code_of_read(*remote, "a", {8, 3}) == ErrorCode::corrupt);
    CHECK(code_of_read(*remote, "a", {~std::uint64_t{0}, 2}) == ErrorCode::corrupt);
    CHECK(code_of_read(*remote, "b", {0, 1}) == ErrorCode::not_found);
    CHECK(code_of_read(*remote, "../b", {0, 1}) == ErrorCode::invalid_argument);
    REQUIRE(base::make_folders(folder / "d").ok());
    CHECK(code_of_read(*remote, "d", {0, 1}) == ErrorCode::not_found);
    REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
    CHECK(code_of_read(*remote, "fifo", {0, 1}) == ErrorCode::not_found);
    const auto missing = read_blocking(*remote, "b", {0, 1}, soon());
    CHECK(missing.error().object == folder / "b");
    CHECK(remote->head("d").error().code == ErrorCode::not_found);
    CHECK(read_whole(*remote, "a", 9, soon()).error().code == ErrorCode::corrupt);
  }

  TEST_CASE("put replaces as a whole and leaves nothing beside") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    put_text(*remote, "x/y", "old");
    put_text(*remote, "x/y", std::string(3'000'000, 'n'));
    CHECK(remote->head("x/y")->bytes == 3'000'000);
    const auto names = remote->list("");
    REQUIRE(names.ok());
    REQUIRE(names->size() == 1);
    CHECK(names->front().name == "x/y");
    CHECK(base::list_folder(folder / ".hfdelta-tmp")->empty());
    CHECK(base::list_folder(folder / "x")->size() == 1);
  }

  TEST_CASE("a put whose source fails leaves the old object") {
    class Failing final : public base::ReadableBytes {
     public:
      std::uint64_t size() const override { return 10; }
      Result<void> read_at(std::uint64_t /*offset*/, base::ByteSpan /*out*/) override {
        return Error{ErrorCode::io, "no"};
      }
    };
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    put_text(*remote, "x", "old");
    Failing failing;
    CHECK_FALSE(remote->put("x", failing).ok());
    CHECK(text_of(*remote, "x") == "old");
    CHECK(base::list_folder(folder / ".hfdelta-tmp")->empty());
  }

  TEST_CASE("put-if-absent lets exactly one of many writers win") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    for (int round = 0; round < 20; ++round) {
      const std::string name = "claims/" + std::to_string(round);
      std::atomic<int> won{0};
      std::atomic<int> lost{0};
      std::vector<std::thread> writers;
      for (int writer = 0; writer < 4; ++writer) {
        writers.emplace_back([&, writer] {
          const auto put = remote->put_if_absent(name, base::as_bytes(std::to_string(writer)));
          if (put.ok()) {
            ++won;
          } else if (put.error().code == ErrorCode::already_exists) {
            ++lost;
          }
        });
      }
      for (std::thread& writer : writers) {
        writer.join();
      }
      CHECK(won == 1);
      CHECK(lost == 3);
      CHECK(remote->head(name)->bytes == 1);
    }
  }

  TEST_CASE("a listing is sorted, deep, below the prefix only, and follows file symlinks") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    for (const char* name : {"p/b", "p/a/x", "p/a.c", "pq/z", "blobs/1"}) {
      put_text(*remote, name, "t");
    }
    REQUIRE(::symlink("../blobs/1", (folder / "p/link").c_str()) == 0);
    REQUIRE(::symlink("nowhere", (folder / "p/dead").c_str()) == 0);
    REQUIRE(::symlink("self", (folder / "p/self").c_str()) == 0);
    REQUIRE(::symlink("..", (folder / "p/a/loop").c_str()) == 0);
    REQUIRE(::symlink("../blobs", (folder / "p/other").c_str()) == 0);
    REQUIRE(::mkfifo((folder / "p/fifo").c_str(), 0600) == 0);
    std::vector<std::string> names;
    const auto listed = remote->list("p");
    REQUIRE(listed.ok());
    for (const ObjectInfo& object : *listed) {
      names.push_back(object.name);
    }
    CHECK(names == std::vector<std::string>{"p/a.c", "p/a/x", "p/b", "p/link", "p/other/1"});
    CHECK(remote->list("p/b")->empty());
    CHECK(remote->list("absent/x")->empty());
    CHECK_FALSE(remote->list("../x").ok());
  }

  TEST_CASE("removing is idempotent") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    put_text(*remote, "a", "t");
    CHECK(remote->remove("a").ok());
    CHECK(remote->remove("a").ok());
    CHECK(remote->head("a").error().code == ErrorCode::not_found);
    CHECK_FALSE(remote->remove("../a").ok());
  }

  TEST_CASE("an object has a local path, a bad name has none") {
    const test::TempFolder folder;
    const auto remote = open_folder_remote(folder.path());
    CHECK(remote->local_path("a/b") == folder / "a/b");
    CHECK(remote->local_path("../b") == std::nullopt);
  }
}

}  // namespace
}  // namespace hfd::remote
