// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work_tree_fixture.hpp"

namespace hfd::publish {
namespace {

using test::Staging;
using test::TempFolder;
using test::version_of;

ContentHash hash_of(const std::string& text) { return base::content_hash(base::as_bytes(text)); }

StagedFile staged_at(Staging& staging, const std::string& path) {
  const auto files = staging->staged_files();
  REQUIRE(files.ok());
  for (const StagedFile& file : *files) {
    if (file.path == path) {
      return file;
    }
  }
  return {};
}

TEST_SUITE("publish/work_tree_recovery") {
  TEST_CASE("a file that was open at a crash is kept, listed and not published") {
    const TempFolder temp;
    Staging staging(temp / "s");
    staging.create("whole", "w");
    const auto node = staging->create_file(staging.new_node("half"));
    REQUIRE(node.ok());
    staging.write_bytes(node->id, "half of it");
    staging.reopen();
    CHECK(staged_at(staging, "half").left_by_crash);
    CHECK(staged_at(staging, "half").bytes == 10);
    CHECK_FALSE(staged_at(staging, "half").writing);
    CHECK(staging.staged_text(staging.at("half").id) == "half of it");
    CHECK(staging.paths() == "whole ");
    staging.reopen();
    CHECK(staging.paths() == "whole ");
    SUBCASE("until it is forgiven") { REQUIRE(staging->forgive().ok()); }
    SUBCASE("until it gets another name") {
      REQUIRE(staging.rename("half", "tmp").ok());
      REQUIRE(staging.rename("tmp", "half").ok());
    }
    SUBCASE("until it is written again") {
      REQUIRE(staging->begin_writing(node->id).ok());
      REQUIRE(staging->settled(node->id, std::nullopt, true).ok());
    }
    CHECK_FALSE(staged_at(staging, "half").left_by_crash);
    CHECK(staging.paths() == "half whole ");
  }

  TEST_CASE("the version's file survives a crash in the middle of rewriting it") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->switch_to(nullptr, version_of(1, {{"inplace", "i"}, {"saved", "s"}})).ok());
    REQUIRE(staging->stage(staging.at("inplace").id, 0, nullptr).ok());
    REQUIRE(staging->begin_writing(staging.at("inplace").id).ok());
    const auto temporary =
        staging->create_file(staging.new_node(".tmpAbCdEf"));  // renamed before it is closed
    REQUIRE(temporary.ok());
    REQUIRE(staging.rename(".tmpAbCdEf", "saved").ok());
    staging.reopen();
    const auto snapshot = staging->snapshot();
    REQUIRE(snapshot.ok());
    REQUIRE(snapshot->entries.size() == 2);
    CHECK(snapshot->entries[0].node.content == hash_of("i"));
    CHECK(snapshot->entries[0].node.place == Place::published);
    CHECK(snapshot->entries[1].node.content == hash_of("s"));
    CHECK(snapshot->entries[1].node.bytes == 1);
    staging.publish_all(2);
    CHECK(staged_at(staging, "saved").left_by_crash);
  }

  TEST_CASE("nameless nodes and data files of nobody are gone after opening") {
    const TempFolder temp;
    Staging staging(temp / "s");
    staging.create("open", "x");
    staging.create("kept", "y");
    REQUIRE(staging.unlink("open", true).ok());
    REQUIRE(base::replace_file(temp / "s/data/999", base::as_bytes("stray")).ok());
    REQUIRE(base::replace_file(temp / "s/data/2.filling-0", base::as_bytes("stray")).ok());
    REQUIRE(base::replace_file(temp / "s/tmp/object", base::as_bytes("stray")).ok());
    staging.reopen();
    CHECK(staging.data_file_count() == 1);
    CHECK(std::filesystem::is_empty(staging->temporary_folder()));
    CHECK(staging.staged_text(staging.at("kept").id) == "y");
  }

  TEST_CASE("a staged file whose bytes are missing is listed as lost and never read as zeros") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const Node node = staging.create("f", "x");
    staging.close();
    std::filesystem::remove(temp / "s/data/" + std::to_string(node.id));
    staging.open();
    CHECK(staged_at(staging, "f").lost);
    CHECK(staged_at(staging, "f").left_by_crash);
    const auto data = staging->open_data(node.id);
    REQUIRE_FALSE(data.ok());
    CHECK(data.error().code == ErrorCode::corrupt);
    REQUIRE(staging->forgive().ok());
    CHECK(staging.paths().empty());
    REQUIRE(staging.unlink("f").ok());
    CHECK(staging->staged_files()->empty());
  }

  TEST_CASE("after power loss synced files are exact and others absent or incomplete") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const Node synced = staging.create("synced", "s");
    const Node unsynced = staging.create("unsynced", "u");
    REQUIRE(staging->sync(synced.id).ok());
    staging.create("after", "a");
    staging.close();
    SUBCASE("with its data") {}
    SUBCASE("without its data") {
      std::filesystem::remove(temp / "s/data/" + std::to_string(unsynced.id));
    }
    staging.lose_power();
    CHECK(staging.staged_text(staging.at("synced").id) == "s");
    CHECK_FALSE(staged_at(staging, "synced").left_by_crash);
    const bool absent = staging.at("unsynced").id == 0;
    CHECK((absent || staged_at(staging, "unsynced").left_by_crash));
    CHECK(staging.paths() == "synced ");
  }

  TEST_CASE("a file that was synced and then closed is whole after power loss") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto node = staging->create_file(staging.new_node("f"));
    staging.write_bytes(node->id, "f");
    REQUIRE(staging->settled(node->id, std::nullopt, false).ok());
    REQUIRE(staging->sync(node->id).ok());
    staging.write_bytes(node->id, "g");
    REQUIRE(staging->settled(node->id, std::nullopt, true).ok());
    staging.lose_power();
    CHECK_FALSE(staged_at(staging, "f").left_by_crash);
    CHECK(staging.staged_text(staging.at("f").id) == "g");
  }

  TEST_CASE("a rename over a synced file that power loss takes back finds the old bytes") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const Node old = staging.create("f", "old");
    REQUIRE(staging->sync(old.id).ok());
    staging.create("new", "new");
    REQUIRE(staging.rename("new", "f").ok());
    // A copy is what the disk holds: closing the tree would sync it.
    std::filesystem::copy(temp / "s", temp / "lost", std::filesystem::copy_options::recursive);
    Staging* const first = &staging;
    first->close();
    std::filesystem::remove_all(temp / "s");
    std::filesystem::rename(temp / "lost", temp / "s");
    staging.lose_power();
    CHECK(staging.staged_text(staging.at("f").id) == "old");
  }

  TEST_CASE("a killed daemon leaves what its last answered call left") {
    const TempFolder temp;
    int pipe_ends[2];
    REQUIRE(::pipe(static_cast<int*>(pipe_ends)) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      WorkTreeOptions options;
      options.folder = temp / "s";
      options.bucket_uri = "file:///bucket";
      options.ref = "main";
      auto tree = WorkTree::open(options);
      for (int i = 0; tree.ok(); ++i) {
        const auto node = (*tree)->create_file({root_node, "f" + std::to_string(i), 0644, 0, 0});
        if (!node.ok() || !(*tree)->settled(node->id, std::nullopt, true).ok() ||
            ::write(pipe_ends[1], &i, sizeof i) != static_cast<ssize_t>(sizeof i)) {
          break;
        }
      }
      ::_exit(1);
    }
    REQUIRE(child > 0);
    ::close(pipe_ends[1]);
    int last = -1;
    while (last < 200) {
      REQUIRE(::read(pipe_ends[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last));
    }
    ::kill(child, SIGKILL);
    while (::read(pipe_ends[0], &last, sizeof last) == static_cast<ssize_t>(sizeof last)) {
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    ::close(pipe_ends[0]);
    Staging staging(temp / "s");
    for (int i = 0; i <= last; ++i) {
      const Node node = staging.at("f" + std::to_string(i));
      REQUIRE(node.id != 0);
      REQUIRE_FALSE(node.left_by_crash);
    }
  }

  TEST_CASE("a full disk is ENOSPC and files can still be removed to make room") {
    const TempFolder temp;
    const std::string mount = temp / "m";
    REQUIRE(::mkdir(mount.c_str(), 0700) == 0);
    if (::mount("none", mount.c_str(), "tmpfs", 0, "size=8m") != 0) {
      MESSAGE("SKIPPED: cannot mount a tmpfs here");
      return;
    }
    {
      Staging staging(mount + "/s");
      const Node big = staging.create("big", "");
      auto fd = staging->open_data(big.id);
      REQUIRE(fd.ok());
      std::uint64_t at = 0;
      const std::string piece(64U << 10U, 'x');
      Result<void> written;
      while ((written = base::write_exactly(*fd, at, base::as_bytes(piece), "big")).ok()) {
        at += piece.size();
      }
      CHECK(written.error().code == ErrorCode::no_space);
      int made = 0;
      Result<Node> node = Node{};
      for (; made < 20000; ++made) {
        node = staging->create_file({root_node, "small-" + std::to_string(made), 0644, 0, 0});
        if (!node.ok()) {
          break;
        }
      }
      REQUIRE_FALSE(node.ok());
      CHECK(node.error().code == ErrorCode::no_space);
      CHECK(node.error().os_errno == ENOSPC);
      fd->reset();
      REQUIRE(staging->settled(big.id, std::nullopt, true).ok());
      REQUIRE(staging.unlink("big").ok());
      staging.create("after", std::string(1U << 20U, 'y'));
      CHECK(staging.at("after").bytes == 1U << 20U);
    }
    CHECK(::umount(mount.c_str()) == 0);
  }
}

}  // namespace
}  // namespace hfd::publish
