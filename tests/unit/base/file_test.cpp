// SPDX-License-Identifier: Apache-2.0
#include "base/file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "temp_folder.hpp"

namespace hfd::base {
namespace {

std::string content(const std::string& path) {
  const auto bytes = read_file(path, 1U << 20U);
  REQUIRE(bytes.ok());
  return std::string(as_text(*bytes));
}

TEST_SUITE("base/file") {
  TEST_CASE("replace_file makes the file, then replaces its content and leaves nothing else") {
    const test::TempFolder folder;
    REQUIRE(replace_file(folder / "a", as_bytes("one")).ok());
    CHECK(content(folder / "a") == "one");
    REQUIRE(replace_file(folder / "a", as_bytes("")).ok());
    CHECK(content(folder / "a").empty());
    const auto names = list_folder(folder.path());
    REQUIRE(names.ok());
    CHECK(*names == std::vector<std::string>{"a"});
  }

  TEST_CASE("a replaced file keeps its old bytes for those who have it open") {
    const test::TempFolder folder;
    REQUIRE(replace_file(folder / "a", as_bytes("old")).ok());
    const auto old = FileBytes::open(folder / "a");
    REQUIRE(old.ok());
    REQUIRE(replace_file(folder / "a", as_bytes("new")).ok());
    Bytes read(3);
    REQUIRE((*old)->read_at(0, read).ok());
    CHECK(as_text(read) == "old");
  }

  TEST_CASE("replace_file in a missing folder is not_found and names the path") {
    const test::TempFolder folder;
    const auto done = replace_file(folder / "none/a", as_bytes("x"));
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().code == ErrorCode::not_found);
    CHECK(done.error().object.find("none/a") != std::string::npos);
  }

  TEST_CASE("exclusive creation has exactly one winner") {
    const test::TempFolder folder;
    constexpr int writer_count = 8;
    std::vector<int> won(writer_count, 0);
    std::vector<ErrorCode> codes(writer_count, ErrorCode::already_exists);
    std::vector<std::thread> writers;
    for (int i = 0; i < writer_count; ++i) {
      writers.emplace_back([&, i] {
        const auto index = static_cast<std::size_t>(i);
        const auto done = create_file_exclusively(folder / "claim", as_bytes(std::to_string(i)));
        won[index] = done.ok() ? 1 : 0;
        if (!done.ok()) {
          codes[index] = done.error().code;
        }
      });
    }
    for (std::thread& writer : writers) {
      writer.join();
    }
    CHECK(std::count(won.begin(), won.end(), 1) == 1);
    CHECK(std::all_of(codes.begin(), codes.end(), [](ErrorCode code) { return code == ErrorCode::already_exists; }));
    const auto winner = static_cast<std::size_t>(std::find(won.begin(), won.end(), 1) - won.begin());
    CHECK(content(folder / "claim") == std::to_string(winner));
    CHECK(list_folder(folder.path())->size() == 1);
  }

  TEST_CASE("read_exactly of a file that ends before is corrupt, read_up_to gives what there is") {
    const test::TempFolder folder;
    REQUIRE(replace_file(folder / "a", as_bytes("12345")).ok());
    const auto fd = open_file(folder / "a", O_RDONLY);
    REQUIRE(fd.ok());
    Bytes bytes(4);
    REQUIRE(read_exactly(*fd, 1, bytes, "a").ok());
    CHECK(as_text(bytes) == "2345");
    const auto done = read_exactly(*fd, 2, bytes, "a");
    REQUIRE_FALSE(done.ok());
    CHECK(done.error().code == ErrorCode::corrupt);
    const auto some = read_up_to(*fd, 2, bytes, "a");
    REQUIRE(some.ok());
    CHECK(*some == 3);
    CHECK(*read_up_to(*fd, 100, bytes, "a") == 0);
  }

  TEST_CASE("read_file refuses a file over the limit") {
    const test::TempFolder folder;
    REQUIRE(replace_file(folder / "a", as_bytes("12345")).ok());
    CHECK(read_file(folder / "a", 5).ok());
    CHECK_FALSE(read_file(folder / "a", 4).ok());
  }

  TEST_CASE("write_exactly fills a hole with zeros") {
    const test::TempFolder folder;
    const auto fd = open_file(folder / "a", O_RDWR | O_CREAT);
    REQUIRE(fd.ok());
    REQUIRE(write_exactly(*fd, 3, as_bytes("x"), "a").ok());
    CHECK(content(folder / "a") == std::string("\0\0\0x", 4));
    CHECK(*file_bytes(*fd, "a") == 4);
  }

  TEST_CASE("folders are made with all that lead to them, again without complaint") {
    const test::TempFolder folder;
    REQUIRE(make_folders(folder / "a/b/c").ok());
    REQUIRE(make_folders(folder / "a/b/c").ok());
    REQUIRE(replace_file(folder / "a/file", as_bytes("x")).ok());
    CHECK_FALSE(make_folders(folder / "a/file").ok());
    CHECK_FALSE(make_folders(folder / "a/file/below").ok());
  }

  TEST_CASE("removing a file that is not there is fine") {
    const test::TempFolder folder;
    REQUIRE(replace_file(folder / "a", as_bytes("x")).ok());
    CHECK(remove_file(folder / "a").ok());
    CHECK(remove_file(folder / "a").ok());
    CHECK(list_folder(folder.path())->empty());
  }

  TEST_CASE("errno values keep their meaning") {
    CHECK(os_error(ENOENT, "cannot open", "x").code == ErrorCode::not_found);
    CHECK(os_error(EACCES, "cannot open", "x").code == ErrorCode::permission);
    CHECK(os_error(EPERM, "cannot open", "x").code == ErrorCode::permission);
    CHECK(os_error(ENOSPC, "cannot open", "x").code == ErrorCode::no_space);
    CHECK(os_error(EDQUOT, "cannot open", "x").code == ErrorCode::no_space);
    CHECK(os_error(EROFS, "cannot open", "x").code == ErrorCode::read_only);
    CHECK(os_error(EEXIST, "cannot open", "x").code == ErrorCode::already_exists);
    CHECK(os_error(EIO, "cannot open", "x").code == ErrorCode::io);
    CHECK(os_error(EIO, "cannot open", "x").os_errno == EIO);
  }

  TEST_CASE("FileBytes refuses what is no regular file") {
    const test::TempFolder folder;
    const auto opened = FileBytes::open(folder.path());
    REQUIRE_FALSE(opened.ok());
    CHECK(opened.error().code == ErrorCode::invalid_argument);
  }

  TEST_CASE("MemoryBytes checks its range") {
    const Bytes bytes = to_bytes("abc");
    MemoryBytes memory(bytes);
    Bytes out(2);
    REQUIRE(memory.read_at(1, out).ok());
    CHECK(as_text(out) == "bc");
    CHECK_FALSE(memory.read_at(2, out).ok());
    CHECK_FALSE(memory.read_at(~std::uint64_t{0}, out).ok());
  }

  TEST_CASE("a moved descriptor has one owner") {
    const test::TempFolder folder;
    auto opened = open_file(folder / "a", O_RDWR | O_CREAT);
    REQUIRE(opened.ok());
    Fd first = std::move(opened).value();
    const int number = first.get();
    Fd second = std::move(first);
    CHECK(second.get() == number);
    second.reset();
    CHECK(::fcntl(number, F_GETFD) == -1);
  }
}

}  // namespace
}  // namespace hfd::base
