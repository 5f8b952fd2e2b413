// SPDX-License-Identifier: Apache-2.0
#include "publish/work_tree.hpp"

#include <cerrno>
#include <chrono>

#include <doctest/doctest.h>

#include "work_tree_fixture.hpp"

namespace hfd::publish {
namespace {

using test::file_entry;
using test::Staging;
using test::TempFolder;
using test::version_of;

ContentHash hash_of(const std::string& text) { return base::content_hash(base::as_bytes(text)); }

TEST_SUITE("publish/work_tree") {
  TEST_CASE("one daemon a staging folder") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto second = WorkTree::open(staging.options());
    REQUIRE_FALSE(second.ok());
    CHECK(second.error().code == ErrorCode::busy);
    CHECK(second.error().message == "another hfdeltafs uses this staging folder");
    CHECK(second.error().object == temp / "s");
  }

  TEST_CASE("a staging with unpublished files belongs to its bucket, an empty one starts anew") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->switch_to(nullptr, version_of(1, {{"old", "old"}})).ok());
    staging.create("f", "x");
    staging.close();
    auto other = staging.options();
    other.bucket_uri = "file:///other";
    const auto refused = WorkTree::open(other);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::conflict);
    CHECK_FALSE(refused.error().hint.empty());
    staging.open();
    REQUIRE(staging.unlink("f").ok());
    staging.create(".DS_Store", "junk does not count");
    staging.close();
    const auto taken = WorkTree::open(other);
    REQUIRE(taken.ok());
    CHECK_FALSE((*taken)->version().has_value());
    CHECK((*taken)->list(root_node, "", 10)->empty());
  }

  TEST_CASE("everything is there after opening again") {
    const TempFolder temp;
    Staging staging(temp / "s");
    staging.create("f", "bytes");
    REQUIRE(staging->make_folder(staging.new_node("d", 0700)).ok());
    AttributeChange change;
    change.mode = 0640;
    change.uid = 7;
    change.mtime = 123456789;
    REQUIRE(staging->set_attributes(staging.at("f").id, change).ok());
    const std::uint64_t generation = staging->generation();
    staging.reopen();
    const Node node = staging.at("f");
    CHECK(node.mode == 0640);
    CHECK(node.uid == 7);
    CHECK(node.mtime == 123456789);
    CHECK(staging.staged_text(node.id) == "bytes");
    CHECK(staging.at("d").mode == 0700);
    CHECK(staging->generation() == generation);
  }

  TEST_CASE("a version fills the tree with the attributes of its entries") {
    const TempFolder temp;
    Staging staging(temp / "s");
    auto run = file_entry("bin/run", "#!");
    run.executable = true;
    lineage::FileEntry link = file_entry("link", "");
    link.kind = lineage::FileEntry::Kind::symlink;
    link.symlink_target = "bin/run";
    link.sha256 = {};
    lineage::FileEntry folder = file_entry("empty", "");
    folder.kind = lineage::FileEntry::Kind::folder;
    folder.sha256 = {};
    const auto version = version_of(1, {run, file_entry("config.json", "{}"), link, folder});
    const auto changed = staging->switch_to(nullptr, version);
    REQUIRE(changed.ok());
    CHECK(changed->size() == 5);
    CHECK(staging->version() == version.id);
    CHECK(staging.at("bin/run").mode == 0755);
    CHECK(staging.at("config.json").mode == 0644);
    CHECK(staging.at("config.json").content == hash_of("{}"));
    CHECK(staging.at("config.json").mtime == 1'000'000'000);
    CHECK(staging.at("config.json").place == Place::published);
    CHECK(staging.at("link").symlink_target == "bin/run");
    CHECK(staging.at("empty").kind == NodeKind::folder);
    CHECK(staging.paths() == "bin/run config.json empty/ link ");
    staging.reopen();
    CHECK(staging->version() == version.id);
    CHECK(staging->generation() == 1);
  }

  TEST_CASE("a switch gives new nodes to changed files and keeps the others") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto first = version_of(1, {{"same", "s"}, {"changed", "1"}, {"gone/x", "x"}});
    const auto second = version_of(2, {{"same", "s"}, {"changed", "2"}, {"new/y", "y"}});
    REQUIRE(staging->switch_to(nullptr, first).ok());
    const Node same = staging.at("same");
    const Node changed = staging.at("changed");
    const auto names = staging->switch_to(&first, second);
    REQUIRE(names.ok());
    CHECK(staging.at("same").id == same.id);
    CHECK(staging.at("changed").id != changed.id);
    CHECK(staging.at("changed").content == hash_of("2"));
    CHECK(staging->get(changed.id)->content == hash_of("1"));
    CHECK(staging.at("gone").id == 0);
    CHECK(staging.at("new/y").content == hash_of("y"));
    const bool says_changed = std::any_of(
        names->begin(), names->end(),
        [](const ChangedName& name) { return name.parent == root_node && name.name == "changed"; });
    CHECK(says_changed);
    CHECK_FALSE(staging->switch_to(&first, second).ok());
    staging->drop(changed.id);
    CHECK_FALSE(staging->get(changed.id).ok());
  }

  TEST_CASE("a switch leaves local changes alone") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto first = version_of(
        1, {{"rewritten", "1"}, {"removed", "1"}, {"removed2", "1"}, {"d/a", "1"}, {"e/a", "1"}});
    const auto second = version_of(
        2, {{"rewritten", "2"}, {"removed", "1"}, {"removed2", "2"}, {"mine", "theirs"}});
    REQUIRE(staging->switch_to(nullptr, first).ok());
    staging.rewrite("rewritten", "local");
    REQUIRE(staging.unlink("removed").ok());
    REQUIRE(staging.unlink("removed2").ok());
    staging.create("mine", "mine");
    staging.create("d/local", "l");
    REQUIRE(staging->switch_to(&first, second).ok());
    CHECK(staging.staged_text(staging.at("rewritten").id) == "local");
    CHECK(staging.at("removed").id == 0);
    CHECK(staging.at("removed2").content == hash_of("2"));
    CHECK(staging.staged_text(staging.at("mine").id) == "mine");
    CHECK(staging.at("d/local").id != 0);
    CHECK(staging.at("d/a").id == 0);
    CHECK(staging.at("e").id == 0);
    CHECK(staging.at("mine").beneath->content == hash_of("theirs"));
  }

  TEST_CASE("a switch that changes only attributes keeps the node and what was set here") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto first = version_of(1, {{"a", "1"}, {"b", "1"}});
    auto second = version_of(2, {{"a", "1"}, {"b", "1"}});
    second.manifest.files[0].executable = true;
    second.manifest.files[1].executable = true;
    REQUIRE(staging->switch_to(nullptr, first).ok());
    AttributeChange change;
    change.mode = 0600;
    REQUIRE(staging->set_attributes(staging.at("b").id, change).ok());
    const NodeId id = staging.at("a").id;
    REQUIRE(staging->switch_to(&first, second).ok());
    CHECK(staging.at("a").id == id);
    CHECK(staging.at("a").mode == 0755);
    CHECK(staging.at("b").mode == 0600);
  }

  TEST_CASE("a file may become a folder and a folder a file") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto first = version_of(1, {{"a", "1"}, {"b/x", "1"}});
    const auto second = version_of(2, {{"a/x", "2"}, {"b", "2"}});
    REQUIRE(staging->switch_to(nullptr, first).ok());
    REQUIRE(staging->switch_to(&first, second).ok());
    CHECK(staging.paths() == "a/x b ");
    REQUIRE(staging->switch_to(&second, first).ok());
    CHECK(staging.paths() == "a b/x ");
  }

  TEST_CASE(
      "what was published becomes published with the same node, and its bytes leave staging") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const Node node = staging.create("f", "bytes");
    staging.create("changed", "old");
    staging.create("moved", "m");
    staging.create("removed", "r");
    const auto snapshot = staging->snapshot();
    REQUIRE(snapshot.ok());
    const auto version = staging.publish_of(*snapshot, 1);
    staging.rewrite("changed", "new");
    REQUIRE(staging.rename("moved", "elsewhere").ok());
    REQUIRE(staging.unlink("removed").ok());
    REQUIRE(staging->published(*snapshot, version).ok());
    CHECK(staging->version() == version.id);
    CHECK(staging.at("f").id == node.id);
    CHECK(staging.at("f").place == Place::published);
    CHECK(staging.at("f").content == hash_of("bytes"));
    CHECK(staging.at("changed").place == Place::staged);
    CHECK(staging.at("changed").beneath->content == hash_of("old"));
    CHECK(staging.at("elsewhere").content == hash_of("m"));
    CHECK(staging.at("removed").id == 0);
    CHECK(staging.data_file_count() == 1);
    CHECK(staging->staged_files()->size() == 1);
    const auto second = staging.publish_all(2);
    CHECK(second.manifest.files.size() == 3);
    CHECK(staging.data_file_count() == 0);
  }

  TEST_CASE("a file that is being written stays staged though its snapshot was published") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto node = staging->create_file(staging.new_node("f"));
    REQUIRE(node.ok());
    const auto snapshot = staging->snapshot();
    REQUIRE(snapshot.ok());
    REQUIRE(snapshot->entries.size() == 1);
    CHECK(snapshot->entries[0].node.writing);
    REQUIRE(staging->published(*snapshot, staging.publish_of(*snapshot, 1)).ok());
    CHECK(staging.at("f").place == Place::staged);
  }

  TEST_CASE("files that others put into the claimed version appear") {
    const TempFolder temp;
    Staging staging(temp / "s");
    staging.create("mine", "m");
    const auto snapshot = staging->snapshot();
    auto version = staging.publish_of(*snapshot, 1);
    version.manifest.files.push_back(file_entry("theirs/x", "t"));
    REQUIRE(staging->published(*snapshot, version).ok());
    CHECK(staging.at("theirs/x").content == hash_of("t"));
  }

  TEST_CASE("staging a published file copies, truncates, and changes nothing when the copy fails") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->switch_to(nullptr, version_of(1, {{"f", "published"}, {"g", "gone"}})).ok());
    const NodeId id = staging.at("f").id;
    const auto failed = staging->stage(id, 9, [](const base::Fd&) {
      return Error{ErrorCode::unavailable, "remote"};
    });
    REQUIRE_FALSE(failed.ok());
    CHECK(staging.at("f").place == Place::published);
    CHECK(staging.data_file_count() == 0);
    const auto fill = [](const base::Fd& fd) {
      return base::write_exactly(fd, 0, base::as_bytes("published"), "f");
    };
    const auto staged = staging->stage(id, 9, fill);
    REQUIRE(staged.ok());
    CHECK(staged->bytes == 9);
    CHECK(staging.staged_text(id) == "published");
    REQUIRE(staging->begin_writing(id).ok());
    const auto settled = staging->settled(id, std::nullopt, true);
    CHECK(settled->mtime == 1'000'000'000);  // opened for writing, never written
    REQUIRE(staging->stage(staging.at("g").id, 0, nullptr).ok());
    CHECK(staging.at("g").bytes == 0);
    CHECK_FALSE(staging->begin_writing(root_node).ok());
  }

  TEST_CASE("junk names are usable and left out, a version's own are kept in") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->switch_to(nullptr, version_of(1, {{"._theirs", "t"}, {"a", "a"}})).ok());
    staging.create(".DS_Store", "x");
    REQUIRE(staging->make_folder(staging.new_node("work~")).ok());
    staging.create("work~/f", "x");
    REQUIRE(staging.rename("a", "a~").ok());
    staging.create("a", "new");
    CHECK(staging.paths() == "._theirs a ");
    int junk = 0;
    const auto files = staging->staged_files();
    REQUIRE(files.ok());
    for (const StagedFile& file : *files) {
      junk += file.junk ? 1 : 0;
    }
    CHECK(junk == 2);
    staging.publish_all(2);
    REQUIRE(staging.rename("work~", "work").ok());
    CHECK(staging.paths() == "._theirs a work/f ");
  }

  TEST_CASE("snapshot paths are in bytewise order of the whole path") {
    const TempFolder temp;
    Staging staging(temp / "s");
    REQUIRE(staging->make_folder(staging.new_node("a")).ok());
    staging.create("a/b", "");
    staging.create("a-b", "");
    staging.create("a.b", "");
    CHECK(staging.paths() == "a-b a.b a/b ");
  }

  TEST_CASE("generation moves with changes that a publish would see and not with others") {
    const TempFolder temp;
    Staging staging(temp / "s");
    staging.create("f", "x");
    const NodeId id = staging.at("f").id;
    std::uint64_t before = staging->generation();
    AttributeChange change;
    change.atime = 5;
    REQUIRE(staging->set_attributes(id, change).ok());
    CHECK_FALSE(staging->lookup(root_node, "none").ok());
    CHECK_FALSE(staging->remove_folder(root_node, "f").ok());
    REQUIRE(staging->sync(id).ok());
    CHECK(staging->generation() == before);
    change.mtime = 5;
    REQUIRE(staging->set_attributes(id, change).ok());
    CHECK(staging->generation() > before);
    before = staging->generation();
    staging.publish_all(1);
    CHECK(staging->generation() == before);
  }

  TEST_CASE("five thousand files are made in a few seconds") {
    const TempFolder temp;
    Staging staging(temp / "s");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 5000; ++i) {
      const auto node = staging->create_file({root_node, "file-" + std::to_string(i), 0644, 0, 0});
      REQUIRE(node.ok());
      REQUIRE(staging->settled(node->id, std::nullopt, true).ok());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    MESSAGE("5000 creates took " << took.count() << " s");
    CHECK(took.count() < 60);  // a bound for sanitizer builds on busy machines
    staging.publish_all(1);
    CHECK(staging.data_file_count() == 0);
  }
}

}  // namespace
}  // namespace hfd::publish
