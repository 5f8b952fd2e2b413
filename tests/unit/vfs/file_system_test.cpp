// SPDX-License-Identifier: Apache-2.0
#include "vfs/file_system.hpp"

#include <cerrno>

#include <doctest/doctest.h>

#include "vfs/file_system_fixture.hpp"

namespace hfd::vfs {
namespace {

using test::matrix;
using test::MountFixture;
using test::safetensors;

constexpr const char* model = "model.safetensors";
constexpr const char* version_name = "user.hfdeltafs.version";
constexpr const char* sha256_name = "user.hfdeltafs.sha256";

/// More than one block and more than one piece of a copy into staging.
std::string large_text() { return test::noise((5U << 20U) + 333, 9); }

test::Tree small_tree() {
  return {{model, safetensors({matrix("w", 700, 1)})}, {"notes.txt", "published text"}, {"d/inner", "in"}};
}

TEST_SUITE("vfs/file_system") {
  TEST_CASE("published files are listed, looked up and read") {
    MountFixture f(small_tree());
    CHECK(f.names(root_inode) == "d model.safetensors notes.txt ");
    const Attributes notes = f.lookup("notes.txt");
    CHECK(notes.bytes == 14);
    CHECK(notes.kind == NodeKind::file);
    CHECK(f.text("notes.txt") == "published text");
    CHECK(f.text(model) == small_tree()[model]);
    CHECK(f.try_lookup(root_inode, "nothing").error().code == ErrorCode::not_found);
  }

  TEST_CASE("reads end with the file") {
    MountFixture f(small_tree());
    const HandleId handle = f.open(f.lookup("notes.txt").inode, false);
    CHECK(f.read(handle, {10, 100}) == "text");
    CHECK(f.read(handle, {14, 1}).empty());
    CHECK(f.read(handle, {UINT64_MAX - 1, 1}).empty());
    f.close(handle);
  }

  TEST_CASE("a new file is read as it was written, before and after close") {
    MountFixture f(small_tree());
    const Created made = f.create("new");
    CHECK(made.attributes.uid == 5);
    CHECK(made.attributes.bytes == 0);
    REQUIRE(f.write(made.handle, 0, "hello").ok());
    REQUIRE(f.write(made.handle, 8, "there").ok());
    const std::string wanted = std::string("hello") + std::string(3, '\0') + "there";
    CHECK(f.read(made.handle) == wanted);
    CHECK(f.files->get(made.attributes.inode)->bytes == 13);
    f.close(made.handle);
    CHECK(f.files->get(made.attributes.inode)->bytes == 13);
    CHECK(f.text("new") == wanted);
  }

  TEST_CASE("a file is being written until its last writer closes") {
    MountFixture f(small_tree());
    const Created made = f.create("new");
    const HandleId second = f.open(made.attributes.inode, true);
    CHECK(f.files->has_writer(made.attributes.inode));
    f.close(made.handle);
    CHECK(f.files->has_writer(made.attributes.inode));
    CHECK(f.staging.at("new").writing);
    f.close(second);
    CHECK_FALSE(f.files->has_writer(made.attributes.inode));
    CHECK_FALSE(f.staging.at("new").writing);
  }

  TEST_CASE("the first write to a published file copies it and leaves the other bytes") {
    const std::string before = large_text();
    MountFixture f({{"large", before}});
    const Attributes attributes = f.lookup("large");
    const HandleId handle = f.open(attributes.inode, true);
    CHECK(f.staging.data_file_count() == 0);  // opening alone copies nothing
    REQUIRE(f.write(handle, 4'000'000, "changed").ok());
    std::string wanted = before;
    wanted.replace(4'000'000, 7, "changed");
    CHECK((f.read(handle) == wanted));
    f.close(handle);
    CHECK((f.text("large") == wanted));
    CHECK(f.lookup("large").inode == attributes.inode);
    CHECK(f.lookup("large").bytes == before.size());
    CHECK(f.staging.data_file_count() == 1);
  }

  TEST_CASE("readers that have a file open see what a writer of the same mount wrote") {
    MountFixture f(small_tree());
    const Inode inode = f.lookup("notes.txt").inode;
    const HandleId reader = f.open(inode, false);
    const HandleId writer = f.open(inode, true);
    CHECK(f.read(reader) == "published text");
    REQUIRE(f.write(writer, 0, "PUB").ok());
    CHECK(f.read(reader) == "PUBlished text");
    f.close(writer);
    f.close(reader);
  }

  TEST_CASE("writes that arrive during the copy are all in the file") {
    const std::string before = large_text();
    MountFixture f({{"large", before}});
    const HandleId handle = f.open(f.lookup("large").inode, true);
    std::string wanted = before;
    std::vector<std::future<bool>> answers;
    for (std::uint64_t i = 0; i < 6; ++i) {
      const std::string piece = "piece " + std::to_string(i);
      wanted.replace(i * 700'000, piece.size(), piece);
      const auto promise = std::make_shared<std::promise<bool>>();
      answers.push_back(promise->get_future());
      f.files->write(handle, i * 700'000, base::as_bytes(piece),
                     [promise](const Result<void>& written) { promise->set_value(written.ok()); });
    }
    for (auto& answer : answers) {
      CHECK(answer.get());
    }
    CHECK((f.read(handle) == wanted));
    f.close(handle);
  }

  TEST_CASE("truncation keeps the bytes before it and zeros the bytes beyond the end") {
    MountFixture f(small_tree());
    const Inode inode = f.lookup("notes.txt").inode;
    const auto shorter = f.resize(inode, 9);
    REQUIRE(shorter.ok());
    CHECK(shorter->bytes == 9);
    CHECK(f.text("notes.txt") == "published");
    REQUIRE(f.resize(inode, 12).ok());
    CHECK(f.text("notes.txt") == std::string("published") + std::string(3, '\0'));
    CHECK_FALSE(f.staging.at("notes.txt").writing);
  }

  TEST_CASE("truncation to nothing reads nothing of the old bytes from the remote") {
    MountFixture f(small_tree());
    const std::uint64_t requests = f.publisher.session->remote().counters().requests.load();
    REQUIRE(f.resize(f.lookup(model).inode, 0).ok());
    CHECK(f.publisher.session->remote().counters().requests.load() == requests);
    CHECK(f.text(model).empty());
  }

  TEST_CASE("only files have a size to set") {
    MountFixture f(small_tree());
    CHECK(f.resize(f.lookup("d").inode, 1).error().code == ErrorCode::invalid_argument);
  }

  TEST_CASE("an open handle of a replaced published file keeps the old bytes") {
    MountFixture f(small_tree());
    const Inode before = f.lookup(model).inode;
    const HandleId old_handle = f.open(before, false);
    test::Tree tree = small_tree();
    tree[model][2000] = static_cast<char>(tree[model][2000] + 1);
    const lineage::VersionPtr next = f.publisher.publish(tree).version;
    REQUIRE(f.staging->switch_to(f.version.get(), *next).ok());
    CHECK((f.read(old_handle) == small_tree()[model]));
    CHECK(f.lookup(model).inode != before);
    CHECK(f.files->get(before).ok());
    f.close(old_handle);
    f.files->forget(before, 1);
    CHECK(f.files->get(before).error().code == ErrorCode::stale);
  }

  TEST_CASE("an unlinked file lives until its handle is released and the kernel forgets it") {
    MountFixture f(small_tree());
    const Created made = f.create("new");
    REQUIRE(f.write(made.handle, 0, "still here").ok());
    REQUIRE(f.files->unlink(root_inode, "new").ok());
    CHECK(f.try_lookup(root_inode, "new").error().code == ErrorCode::not_found);
    CHECK(f.read(made.handle) == "still here");
    CHECK(f.files->get(made.attributes.inode)->links == 0);
    f.close(made.handle);
    f.files->forget(made.attributes.inode, 1);
    CHECK(f.files->get(made.attributes.inode).error().code == ErrorCode::stale);
  }

  TEST_CASE("a rename over an open file leaves the handle its bytes") {
    MountFixture f(small_tree());
    const HandleId handle = f.open(f.lookup("notes.txt").inode, false);
    const Created made = f.create("fresh");
    REQUIRE(f.write(made.handle, 0, "fresh bytes").ok());
    f.close(made.handle);
    REQUIRE(f.files->rename(root_inode, "fresh", root_inode, "notes.txt", publish::RenameMode::replace).ok());
    CHECK(f.read(handle) == "published text");
    CHECK(f.text("notes.txt") == "fresh bytes");
    f.close(handle);
  }

  TEST_CASE("attributes name the version of published files and say staging for changed ones") {
    MountFixture f(small_tree());
    const Inode inode = f.lookup("notes.txt").inode;
    CHECK(*f.files->attribute(inode, version_name) == f.version->id.hex());
    CHECK(*f.files->attribute(inode, sha256_name) ==
          base::content_hash(base::as_bytes("published text")).hex());
    CHECK(f.files->attribute_names(inode).size() == 2);
    const HandleId handle = f.open(inode, true);
    REQUIRE(f.write(handle, 0, "P").ok());
    f.close(handle);
    CHECK(*f.files->attribute(inode, version_name) == "staging");
    CHECK(f.files->attribute(inode, sha256_name).error().code == ErrorCode::not_found);
    CHECK(f.files->attribute_names(inode) == std::vector<std::string>{version_name});
    CHECK(f.files->attribute(inode, "user.other").error().code == ErrorCode::not_found);
    CHECK(*f.files->attribute(root_inode, version_name) == f.version->id.hex());
  }

  TEST_CASE("times that a user sets while writing stay after close") {
    MountFixture f(small_tree());
    const Created made = f.create("new");
    REQUIRE(f.write(made.handle, 0, "x").ok());
    AttributeSet set;
    set.change.mtime = 1'234'567'890'123'456'789;
    const auto changed =
        MountFixture::wait_for<Attributes>([&](auto take) { f.files->set(made.attributes.inode, set, take); });
    REQUIRE(changed.ok());
    CHECK(changed->mtime == 1'234'567'890'123'456'789);
    f.close(made.handle);
    CHECK(f.files->get(made.attributes.inode)->mtime == 1'234'567'890'123'456'789);
  }

  TEST_CASE("a read-only mount refuses every change with EROFS and reads on") {
    FileSystemOptions options;
    options.read_only = true;
    MountFixture f(small_tree(), options);
    const Inode inode = f.lookup("notes.txt").inode;
    const publish::NewNode node{root_inode, "new", 0644, 0, 0};
    AttributeSet set;
    set.change.mode = 0600;
    const std::vector<Error> refused{
        f.files->create(node, true).error(),
        f.files->open(inode, true).error(),
        f.files->make_folder(node).error(),
        f.files->make_symlink(node, "notes.txt").error(),
        f.files->unlink(root_inode, "notes.txt").error(),
        f.files->remove_folder(root_inode, "d").error(),
        f.files->rename(root_inode, "notes.txt", root_inode, "x", publish::RenameMode::replace).error(),
        f.resize(inode, 0).error(),
        MountFixture::wait_for<Attributes>([&](auto take) { f.files->set(inode, set, take); }).error()};
    for (const Error& error : refused) {
      CHECK(error.code == ErrorCode::read_only);
      CHECK(error.os_errno == EROFS);
    }
    CHECK(f.text("notes.txt") == "published text");
    CHECK(f.names(root_inode) == "d model.safetensors notes.txt ");
  }

  TEST_CASE("a handle opened for reading takes no writes, and unknown handles nothing") {
    MountFixture f(small_tree());
    const HandleId handle = f.open(f.lookup("notes.txt").inode, false);
    CHECK(f.write(handle, 0, "x").error().code == ErrorCode::invalid_argument);
    f.close(handle);
    CHECK(f.write(handle, 0, "x").error().code == ErrorCode::invalid_argument);
    CHECK(f.try_read(handle, {0, 1}).error().code == ErrorCode::invalid_argument);
    CHECK(f.files->folder(handle).error().code == ErrorCode::invalid_argument);
    CHECK(f.flush(handle).ok());
    f.files->release(handle);
    CHECK(f.text("notes.txt") == "published text");
  }

  TEST_CASE("folders are no files to open") {
    MountFixture f(small_tree());
    CHECK(f.files->open(f.lookup("d").inode, false).error().code == ErrorCode::invalid_argument);
    CHECK(f.files->read_link(f.lookup("notes.txt").inode).error().code == ErrorCode::invalid_argument);
  }

  TEST_CASE("the control folder is hidden in listings, found by name and cannot be changed") {
    MountFixture f(small_tree());
    const Inode control = f.lookup(".hfdelta").inode;
    CHECK(control == control_folder_inode);
    CHECK(f.files->unlink(root_inode, ".hfdelta").error().os_errno == EROFS);
    CHECK(f.files->remove_folder(root_inode, ".hfdelta").error().os_errno == EROFS);
    CHECK(f.files->rename(root_inode, "d", root_inode, ".hfdelta", publish::RenameMode::replace).error().os_errno ==
          EROFS);
    CHECK(f.files->create({control, "new", 0644, 0, 0}, true).error().os_errno == EROFS);
    CHECK(f.files->make_folder({control, "new", 0755, 0, 0}).error().os_errno == EROFS);
    CHECK_FALSE(f.files->create({root_inode, ".hfdelta", 0644, 0, 0}, true).ok());
  }

  TEST_CASE("no folder or link takes the name of the control folder") {
    MountFixture f(small_tree());
    CHECK_FALSE(f.files->make_folder({root_inode, ".hfdelta", 0755, 0, 0}).ok());
    CHECK_FALSE(f.files->make_symlink({root_inode, ".hfdelta", 0777, 0, 0}, "d").ok());
  }

  TEST_CASE("versions are read through the views, whatever the tree holds now") {
    MountFixture f(small_tree());
    REQUIRE(f.files->unlink(root_inode, "notes.txt").ok());
    const Inode versions = f.lookup("versions", f.lookup(".hfdelta").inode).inode;
    const Inode root = f.lookup(f.version->id.hex(), versions).inode;
    const Attributes notes = f.lookup("notes.txt", root);
    const HandleId handle = f.open(notes.inode, false);
    CHECK(f.read(handle, {10, 100}) == "text");
    f.close(handle);
    CHECK(*f.files->attribute(notes.inode, version_name) == f.version->id.hex());
    CHECK(f.files->open(notes.inode, true).error().os_errno == EROFS);
  }

  TEST_CASE("the status is read as it was at open, past the page cache") {
    MountFixture f(small_tree());
    const auto opened = f.files->open(status_inode, false);
    REQUIRE(opened.ok());
    CHECK(opened->bypass_page_cache);
    CHECK(f.read(opened->handle) == "{\"status\": 1}");
    CHECK(f.read(opened->handle, {2, 6}) == "status");
    CHECK(f.read(opened->handle, {100, 6}).empty());
    f.files->release(opened->handle);
  }

  TEST_CASE("a read that fails is remembered for the status") {
    MountFixture f(small_tree());
    std::filesystem::remove_all(f.publisher.bucket_path + "/hfdelta/blobs");
    const HandleId handle = f.open(f.lookup(model).inode, false);
    const auto bytes = f.try_read(handle, {0, 10});
    REQUIRE_FALSE(bytes.ok());
    REQUIRE(f.files->read_errors().size() == 1);
    CHECK(f.files->read_errors()[0].error.message == bytes.error().message);
    f.close(handle);
  }

  TEST_CASE("a copy into staging that fails changes nothing") {
    MountFixture f(small_tree());
    std::filesystem::remove_all(f.publisher.bucket_path + "/hfdelta/blobs");
    const Inode inode = f.lookup(model).inode;
    const HandleId handle = f.open(inode, true);
    CHECK_FALSE(f.write(handle, 0, "x").ok());
    f.close(handle);
    CHECK(f.staging.at(model).place == publish::Place::published);
    CHECK(f.staging.data_file_count() == 0);
    CHECK(*f.files->attribute(inode, version_name) == f.version->id.hex());
  }

  TEST_CASE("a file is written again after a publish took its bytes away") {
    MountFixture f(small_tree());
    const Created made = f.create("new");
    REQUIRE(f.write(made.handle, 0, "first bytes").ok());
    REQUIRE(f.flush(made.handle).ok());
    const auto snapshot = f.staging->snapshot();
    REQUIRE(snapshot.ok());
    const lineage::Version next = f.staging.publish_of(*snapshot, 2);
    REQUIRE(f.staging->published(*snapshot, next).ok());
    REQUIRE(f.staging.at("new").place == publish::Place::published);
    CHECK(f.read(made.handle) == "first bytes");
    REQUIRE(f.write(made.handle, 0, "again").ok());
    CHECK(f.read(made.handle) == "again bytes");
    f.close(made.handle);
    CHECK(f.staging.staged_text(made.attributes.inode) == "again bytes");
  }
}

}  // namespace
}  // namespace hfd::vfs
