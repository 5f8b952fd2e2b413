// SPDX-License-Identifier: Apache-2.0
// Helpers of the work tree's tests: a staging folder that can be closed, killed and opened again,
// and versions made of text.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/hash.hpp"
#include "publish/work_tree.hpp"
#include "temp_folder.hpp"

namespace hfd::test {

inline lineage::FileEntry file_entry(const std::string& path, const std::string& text) {
  lineage::FileEntry entry;
  entry.path = path;
  entry.bytes = text.size();
  entry.sha256 = base::content_hash(base::as_bytes(text));
  entry.mtime = 1'000'000'000;
  return entry;
}

inline lineage::Version version_of(unsigned number, std::vector<lineage::FileEntry> files) {
  std::sort(files.begin(), files.end(),
            [](const auto& a, const auto& b) { return a.path < b.path; });
  lineage::Version version;
  version.id = base::version_id(base::as_bytes("version " + std::to_string(number)));
  version.manifest.sequence = number;
  version.manifest.time = 2'000'000'000;
  version.manifest.files = std::move(files);
  return version;
}

inline lineage::Version version_of(unsigned number,
                                   const std::map<std::string, std::string>& texts) {
  std::vector<lineage::FileEntry> files;
  for (const auto& [path, text] : texts) {
    files.push_back(file_entry(path, text));
  }
  return version_of(number, std::move(files));
}

class Staging {
 public:
  explicit Staging(const std::string& folder) {
    options_.folder = folder;
    options_.bucket_uri = "file:///bucket";
    options_.ref = "main";
    open();
  }
  void open() {
    auto opened = publish::WorkTree::open(options_);
    if (!opened.ok()) {
      FAIL("cannot open: " << opened.error().message << ": " << opened.error().object);
    }
    tree_ = std::move(*opened);
  }
  /// As after kill -9 followed by a new daemon: closing changes no row, so closing is enough.
  void reopen() {
    tree_.reset();
    open();
  }
  void lose_power() {
    tree_.reset();
    options_.assume_power_loss = true;
    open();
    options_.assume_power_loss = false;
  }
  void close() { tree_.reset(); }
  publish::WorkTreeOptions& options() { return options_; }
  publish::WorkTree& operator*() { return *tree_; }
  publish::WorkTree* operator->() { return tree_.get(); }

  /// The node of a path; the id is 0 when there is none.
  publish::Node at(const std::string& path) const {
    publish::Node node;
    node.id = publish::root_node;
    std::size_t from = 0;
    while (from <= path.size()) {
      const std::size_t slash = std::min(path.find('/', from), path.size());
      auto found = tree_->lookup(node.id, path.substr(from, slash - from));
      if (!found.ok()) {
        return {};
      }
      node = *found;
      from = slash + 1;
    }
    return node;
  }
  publish::NodeId folder(const std::string& path) const {
    return path.empty() ? publish::root_node : at(path).id;
  }
  static std::pair<std::string, std::string> split(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == path.npos ? std::pair<std::string, std::string>{"", path}
                              : std::pair{path.substr(0, slash), path.substr(slash + 1)};
  }
  publish::NewNode new_node(const std::string& path, std::uint32_t mode = 0644) const {
    const auto [above, name] = split(path);
    return {folder(above), name, mode, 0, 0};
  }
  void write_bytes(publish::NodeId id, const std::string& text) {
    const auto fd = tree_->open_data(id);
    REQUIRE(fd.ok());
    REQUIRE(base::write_exactly(*fd, 0, base::as_bytes(text), "data").ok());
  }
  /// Makes a file and closes it.
  publish::Node create(const std::string& path, const std::string& text) {
    const auto node = tree_->create_file(new_node(path));
    REQUIRE(node.ok());
    write_bytes(node->id, text);
    const auto settled = tree_->settled(node->id, std::nullopt, true);
    REQUIRE(settled.ok());
    return *settled;
  }
  /// Replaces the bytes of a file as open(O_TRUNC), write, close do.
  void rewrite(const std::string& path, const std::string& text) {
    const publish::Node node = at(path);
    REQUIRE(tree_->stage(node.id, 0, nullptr).ok());
    REQUIRE(tree_->begin_writing(node.id).ok());
    std::filesystem::resize_file(tree_->folder() + "/data/" + std::to_string(node.id), 0);
    write_bytes(node.id, text);
    REQUIRE(tree_->settled(node.id, std::nullopt, true).ok());
  }
  std::string staged_text(publish::NodeId id) const {
    const auto fd = tree_->open_data(id);
    REQUIRE(fd.ok());
    const auto size = base::file_bytes(*fd, "data");
    REQUIRE(size.ok());
    std::string text(*size, '\0');
    REQUIRE(base::read_exactly(*fd, 0, std::as_writable_bytes(std::span(text.data(), text.size())),
                               "data")
                .ok());
    return text;
  }
  Result<void> rename(const std::string& from, const std::string& to, bool is_open = false,
                      publish::RenameMode mode = publish::RenameMode::replace) {
    const auto [a, a_name] = split(from);
    const auto [b, b_name] = split(to);
    return tree_->rename(folder(a), a_name, folder(b), b_name, mode,
                         [&](publish::NodeId) { return is_open; });
  }
  Result<void> unlink(const std::string& path, bool is_open = false) {
    const auto [above, name] = split(path);
    const auto done = tree_->unlink(folder(above), name, is_open);
    return done.ok() ? Result<void>() : Result<void>(done.error());
  }
  /// The version that a publish of `snapshot` makes, reading staged bytes as it would.
  lineage::Version publish_of(const publish::Snapshot& snapshot, unsigned number) const {
    std::vector<lineage::FileEntry> files;
    for (const publish::SnapshotEntry& one : snapshot.entries) {
      lineage::FileEntry entry;
      entry.path = one.path;
      entry.mtime = one.node.mtime;
      entry.executable = (one.node.mode & 0100U) != 0 && one.node.kind == publish::NodeKind::file;
      if (one.node.kind == publish::NodeKind::folder) {
        entry.kind = lineage::FileEntry::Kind::folder;
      } else if (one.node.kind == publish::NodeKind::symlink) {
        entry.kind = lineage::FileEntry::Kind::symlink;
        entry.symlink_target = one.node.symlink_target;
      } else if (one.node.place == publish::Place::staged) {
        const std::string text = staged_text(one.node.id);
        entry.bytes = text.size();
        entry.sha256 = base::content_hash(base::as_bytes(text));
      } else {
        entry.bytes = one.node.bytes;
        entry.sha256 = one.node.content;
      }
      files.push_back(entry);
    }
    return version_of(number, std::move(files));
  }
  lineage::Version publish_all(unsigned number) {
    const auto snapshot = tree_->snapshot();
    REQUIRE(snapshot.ok());
    lineage::Version version = publish_of(*snapshot, number);
    REQUIRE(tree_->published(*snapshot, version).ok());
    return version;
  }
  std::string paths() const {
    const auto snapshot = tree_->snapshot();
    REQUIRE(snapshot.ok());
    std::string all;
    for (const auto& entry : snapshot->entries) {
      all += entry.path + (entry.node.kind == publish::NodeKind::folder ? "/ " : " ");
    }
    return all;
  }
  std::size_t data_file_count() const {
    const auto names = base::list_folder(options_.folder + "/data");
    REQUIRE(names.ok());
    return names->size();
  }

 private:
  publish::WorkTreeOptions options_;
  std::unique_ptr<publish::WorkTree> tree_;
};

}  // namespace hfd::test
