// SPDX-License-Identifier: Apache-2.0
// The work tree as a publish sees it: what is to become a version, and what changes once it is one.
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "publish/work_tree_local.hpp"
#include "publish/work_tree_version.hpp"

namespace hfd::publish {
namespace {

constexpr std::size_t everything = ~std::size_t{0};

struct Folder {
  NodeId id = root_node;
  std::string path;
};

/// As the version beneath has it. False when it has nothing there.
bool show_beneath(Node& node) {
  if (!node.beneath) {
    return false;
  }
  node.place = Place::published;
  node.content = node.beneath->content;
  node.bytes = node.beneath->bytes;
  node.mtime = node.beneath->mtime;
  node.mode = node.beneath->executable ? node.mode | 0100U : node.mode & ~0111U;
  node.writing = false;
  return true;
}

/// Adds the entries of one folder; folders below it are queued.
Result<void> add_folder(const store::Transaction& reading, const Folder& folder,
                        std::vector<Folder>& queue, std::vector<SnapshotEntry>& entries) {
  HFD_TRY(const auto ids, journal::ids_in(reading, folder.id, {}, everything));
  bool shows_something = false;
  for (const NodeId id : ids) {
    HFD_TRY(journal::Row row, journal::get_row(reading, id));
    if (is_junk_name(row.node.name) && !row.from_version) {
      continue;
    }
    std::string path = folder.path.empty() ? row.node.name : folder.path + "/" + row.node.name;
    if (row.node.kind == NodeKind::folder) {
      shows_something = true;
      queue.push_back({id, std::move(path)});
      continue;
    }
    if (row.node.left_by_crash && !show_beneath(row.node)) {
      continue;
    }
    shows_something = true;
    entries.push_back({std::move(path), std::move(row.node)});
  }
  if (!shows_something && folder.id != root_node) {
    HFD_TRY(journal::Row row, journal::get_row(reading, folder.id));
    entries.push_back({folder.path, std::move(row.node)});
  }
  return {};
}

/// The bytes of `seen` (as a snapshot had it) are those of `entry` now; true when the row changed.
bool turn_published(journal::Row& row, const Node& seen, const lineage::FileEntry& entry) {
  const bool same_bytes = row.node.place == Place::staged && seen.place == Place::staged &&
                          !seen.writing && !row.node.writing && row.node.change == seen.change &&
                          row.node.bytes == entry.bytes;
  if (!same_bytes) {
    return false;
  }
  row.node.place = Place::published;
  row.node.content = entry.sha256;
  row.node.left_by_crash = false;
  row.synced = false;
  return true;
}

}  // namespace

const lineage::FileEntry* find_entry_at(const lineage::Manifest& manifest, std::string_view path) {
  const auto found = std::lower_bound(
      manifest.files.begin(), manifest.files.end(), path,
      [](const lineage::FileEntry& entry, std::string_view p) { return entry.path < p; });
  return found != manifest.files.end() && found->path == path ? &*found : nullptr;
}

Result<Snapshot> LocalWorkTree::snapshot() const {
  HFD_TRY(const auto reading, tables_->begin_read());
  HFD_TRY(const auto state, journal::find_state(reading));
  Snapshot snapshot;
  snapshot.generation = state ? state->generation : 0;
  std::vector<Folder> queue{Folder{}};
  while (!queue.empty()) {
    const Folder folder = std::move(queue.back());
    queue.pop_back();
    HFD_TRY_VOID(add_folder(reading, folder, queue, snapshot.entries));
  }
  std::sort(snapshot.entries.begin(), snapshot.entries.end(),
            [](const SnapshotEntry& a, const SnapshotEntry& b) { return a.path < b.path; });
  return snapshot;
}

Result<void> LocalWorkTree::published(const Snapshot& snapshot, const lineage::Version& version) {
  std::vector<Retired> data;
  const auto body = [&](store::Transaction& writing, journal::TreeState& state) -> Result<void> {
    data.clear();
    for (const SnapshotEntry& seen : snapshot.entries) {
      const lineage::FileEntry* const entry = find_entry_at(version.manifest, seen.path);
      if (entry == nullptr || entry->kind != lineage::FileEntry::Kind::file ||
          seen.node.kind != NodeKind::file) {
        continue;
      }
      HFD_TRY(auto row, journal::find_row(writing, seen.node.id));
      if (row && turn_published(*row, seen.node, *entry)) {
        data.push_back({row->node.id, row->node.bytes});
        HFD_TRY_VOID(journal::put_row(writing, *row));
      }
    }
    VersionSwitch change_beneath(writing, state, {options_.uid, options_.gid}, version);
    HFD_TRY_VOID(change_beneath.note_published(snapshot));
    state.version = version.id;
    return {};
  };
  HFD_TRY_VOID(change(bookkeeping, body));
  {
    base::Lock lock(mutex_);
    version_ = version.id;
  }
  retire(data);
  remove_retired();
  return {};
}

}  // namespace hfd::publish
