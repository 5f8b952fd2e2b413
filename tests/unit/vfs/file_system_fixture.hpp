// SPDX-License-Identifier: Apache-2.0
// A file system without a kernel over a published bucket, whose calls wait for their answers. Used by
// unit tests only.
#pragma once

#include <future>
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "publish/publisher_fixture.hpp"
#include "publish/work_tree_fixture.hpp"
#include "vfs/file_system.hpp"

namespace hfd::test {

struct MountFixture {
  PublisherFixture publisher;
  Staging staging{publisher.folder / "staging"};
  lineage::VersionPtr version;
  std::unique_ptr<publish::Syncer> syncer;
  std::unique_ptr<vfs::FileSystem> files;

  /// Publishes `tree` and mounts it; the syncer is not started.
  explicit MountFixture(const Tree& tree, const vfs::FileSystemOptions& options = {}) {
    version = publisher.publish(tree).version;
    REQUIRE(staging->switch_to(nullptr, *version).ok());
    api::Session& session = *publisher.session;
    syncer = std::make_unique<publish::Syncer>(*staging, &session.bucket(), session.opener(), session.pool(),
                                               publish::SyncOptions{}, version, nullptr);
    vfs::VersionSource versions{
        [&session](const VersionId& id) { return session.bucket().version(id); },
        [&session] { return session.bucket().version_ids(); },
        [this]() -> Result<std::vector<std::pair<std::string, VersionId>>> {
          return std::vector<std::pair<std::string, VersionId>>{{"main", version->id}};
        },
        [] { return std::string("{\"status\": 1}"); }};
    files = std::make_unique<vfs::FileSystem>(*staging, *syncer, session.rebuilder(), std::move(versions), options);
  }

  template <class T, class Call>
  static Result<T> wait_for(const Call& call) {
    const auto promise = std::make_shared<std::promise<Result<T>>>();
    auto future = promise->get_future();
    call([promise](Result<T> value) { promise->set_value(std::move(value)); });
    return future.get();
  }
  Result<vfs::Attributes> try_lookup(vfs::Inode folder, const std::string& name) {
    return wait_for<vfs::Attributes>([&](auto take) { files->lookup(folder, name, take); });
  }
  vfs::Attributes lookup(const std::string& name, vfs::Inode folder = vfs::root_inode) {
    auto found = try_lookup(folder, name);
    INFO("name " << name);
    REQUIRE(found.ok());
    return *found;
  }
  vfs::HandleId open(vfs::Inode inode, bool writable) {
    const auto opened = files->open(inode, writable);
    INFO((opened.ok() ? std::string() : opened.error().message));
    REQUIRE(opened.ok());
    return opened->handle;
  }
  vfs::Created create(const std::string& name) {
    const auto created = files->create({vfs::root_inode, name, 0644, 5, 6}, true);
    INFO((created.ok() ? std::string() : created.error().message));
    REQUIRE(created.ok());
    return *created;
  }
  Result<base::Bytes> try_read(vfs::HandleId handle, ByteRange range) {
    return wait_for<base::Bytes>([&](auto take) { files->read(handle, range, take); });
  }
  std::string read(vfs::HandleId handle, ByteRange range = {0, 1U << 24U}) {
    const auto bytes = try_read(handle, range);
    INFO((bytes.ok() ? std::string() : bytes.error().message));
    REQUIRE(bytes.ok());
    return std::string(base::as_text(*bytes));
  }
  Result<void> write(vfs::HandleId handle, std::uint64_t offset, const std::string& text) {
    return wait_for<void>([&](auto take) { files->write(handle, offset, base::as_bytes(text), take); });
  }
  Result<void> flush(vfs::HandleId handle) {
    return wait_for<void>([&](auto take) { files->flush(handle, take); });
  }
  void close(vfs::HandleId handle) {
    REQUIRE(flush(handle).ok());
    files->release(handle);
  }
  Result<vfs::Attributes> resize(vfs::Inode inode, std::uint64_t bytes) {
    vfs::AttributeSet set;
    set.bytes = bytes;
    return wait_for<vfs::Attributes>([&](auto take) { files->set(inode, set, take); });
  }
  /// What a new reader of this name sees.
  std::string text(const std::string& name) {
    const vfs::HandleId handle = open(lookup(name).inode, false);
    const std::string read_text = read(handle);
    close(handle);
    return read_text;
  }
  std::string names(vfs::Inode folder) {
    const auto handle = wait_for<vfs::HandleId>([&](auto take) { files->open_folder(folder, take); });
    REQUIRE(handle.ok());
    const auto listed = files->folder(*handle);
    REQUIRE(listed.ok());
    std::string all;
    for (const vfs::FolderEntry& entry : (*listed)->entries) {
      all += entry.name + " ";
    }
    files->release(*handle);
    return all;
  }
};

}  // namespace hfd::test
