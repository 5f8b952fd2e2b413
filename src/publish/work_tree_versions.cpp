// SPDX-License-Identifier: Apache-2.0
// The version beneath a work tree: entry differences of two manifests, applied where the tree has
// no changes of its own.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "publish/work_tree_version.hpp"

namespace hfd::publish {
namespace {

using Entry = lineage::FileEntry;

std::uint32_t mode_of(const Entry& entry) {
  switch (entry.kind) {
    case Entry::Kind::file: return entry.executable ? 0755 : 0644;
    case Entry::Kind::symlink: return 0777;
    case Entry::Kind::folder: return 0755;
  }
  return 0644;
}

NodeKind kind_of(const Entry& entry) {
  switch (entry.kind) {
    case Entry::Kind::file: return NodeKind::file;
    case Entry::Kind::symlink: return NodeKind::symlink;
    case Entry::Kind::folder: return NodeKind::folder;
  }
  return NodeKind::file;
}

bool same_content(const Entry& a, const Entry& b) {
  return a.kind == b.kind && a.sha256 == b.sha256 && a.symlink_target == b.symlink_target;
}
bool same_attributes(const Entry& a, const Entry& b) {
  return a.mtime == b.mtime && a.executable == b.executable;
}

std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

/// Calls `visit` for each path of either list, in path order, with what each says of it.
Result<void> for_each_pair(const std::vector<Entry>& before, const std::vector<Entry>& after,
                           const std::function<Result<void>(const Entry*, const Entry*)>& visit) {
  auto b = before.begin();
  auto a = after.begin();
  while (b != before.end() || a != after.end()) {
    const bool take_b = a == after.end() || (b != before.end() && b->path <= a->path);
    const bool take_a = b == before.end() || (a != after.end() && a->path <= b->path);
    HFD_TRY_VOID(visit(take_b ? &*b : nullptr, take_a ? &*a : nullptr));
    b += take_b ? 1 : 0;
    a += take_a ? 1 : 0;
  }
  return {};
}

}  // namespace

Result<std::vector<ChangedName>> LocalWorkTree::switch_to(const lineage::Version* previous,
                                                          const lineage::Version& next) {
  std::vector<ChangedName> changed;
  const auto done = change(
      bookkeeping, [&](store::Transaction& writing, journal::TreeState& state) -> Result<void> {
        const auto beneath =
            previous == nullptr ? std::nullopt : std::optional<VersionId>(previous->id);
        if (state.version != beneath) {
          return Error{ErrorCode::stale,
                       "the tree is on another version than the one to switch from"};
        }
        VersionSwitch switching(writing, state, {options_.uid, options_.gid}, next);
        HFD_TRY_VOID(switching.run(previous));
        changed = switching.take_changed();
        state.version = next.id;
        return {};
      });
  HFD_TRY_VOID(done);
  base::Lock lock(mutex_);
  version_ = next.id;
  return changed;
}

/// Removals first, so that a file may become a folder and the other way round.
Result<void> VersionSwitch::run(const lineage::Version* previous) {
  static const std::vector<Entry> nothing;
  const std::vector<Entry>& before = previous == nullptr ? nothing : previous->manifest.files;
  const auto done = for_each_pair(
      before, next_.manifest.files, [&](const Entry* b, const Entry* a) -> Result<void> {
        return b != nullptr && a == nullptr ? remove(*b) : Result<void>();
      });
  HFD_TRY_VOID(done);
  HFD_TRY_VOID(remove_empty_folders());
  return for_each_pair(
      before, next_.manifest.files, [&](const Entry* b, const Entry* a) -> Result<void> {
        const bool differs =
            a != nullptr && (b == nullptr || !same_content(*b, *a) || !same_attributes(*b, *a));
        return differs ? apply(b, *a) : Result<void>();
      });
}

/// True when the tree has at that place what the entry says, attributes aside.
Result<bool> VersionSwitch::is_as(const journal::Row& row, const Entry& entry) {
  if (row.node.kind != kind_of(entry)) {
    return false;
  }
  switch (entry.kind) {
    case Entry::Kind::file:
      return row.node.place == publish::Place::published && row.node.content == entry.sha256;
    case Entry::Kind::symlink: return row.node.symlink_target == entry.symlink_target;
    case Entry::Kind::folder: return is_empty_folder(transaction_, row.node.id);
  }
  return false;
}

Result<void> VersionSwitch::detach(const journal::Row& row) {
  HFD_TRY_VOID(journal::remove_name(transaction_, row.node.parent, row.node.name));
  HFD_TRY_VOID(touch_folder(transaction_, row.node.parent));
  changed_.push_back({row.node.parent, row.node.name});
  journal::Row nameless = row;  // somebody may have it open: until drop()
  nameless.node.parent = 0;
  nameless.node.name.clear();
  return journal::put_row(transaction_, nameless);
}

/// A local file at a path of the version: remembers what the version has there.
Result<void> VersionSwitch::note_beneath(journal::Row row, const Entry* entry) {
  const bool is_file =
      entry != nullptr && entry->kind == Entry::Kind::file && row.node.kind == NodeKind::file;
  std::optional<PublishedContent> beneath;
  if (is_file) {
    beneath = PublishedContent{entry->sha256, entry->bytes, entry->mtime, entry->executable};
  }
  const auto& had = row.node.beneath;
  const bool same =
      row.from_version == (entry != nullptr) && had.has_value() == beneath.has_value() &&
      (!had || (had->content == beneath->content && had->bytes == beneath->bytes &&
                had->mtime == beneath->mtime && had->executable == beneath->executable));
  if (same) {
    return {};
  }
  row.from_version = entry != nullptr;
  row.node.beneath = beneath;
  return journal::put_row(transaction_, row);
}

Result<void> VersionSwitch::remove(const Entry& before) {
  HFD_TRY(const auto row, row_at(transaction_, before.path));
  // Also where the file was removed here already: its folder may be empty for that reason only.
  for (std::string_view folder = folder_of(before.path); !folder.empty();
       folder = folder_of(folder)) {
    maybe_empty_.emplace(folder);
  }
  if (!row) {
    return {};
  }
  HFD_TRY(const bool unchanged, is_as(*row, before));
  if (!unchanged) {
    return note_beneath(*row, nullptr);
  }
  if (before.kind == Entry::Kind::folder) {
    maybe_empty_.insert(before.path);
    return {};
  }
  return detach(*row);
}

bool VersionSwitch::next_needs_folder(const std::string& path) const {
  const auto& files = next_.manifest.files;
  const Entry* const itself = find_entry_at(next_.manifest, path);
  if (itself != nullptr) {
    return itself->kind == Entry::Kind::folder;
  }
  const std::string below = path + "/";
  const auto found =
      std::lower_bound(files.begin(), files.end(), below,
                       [](const Entry& entry, const std::string& p) { return entry.path < p; });
  return found != files.end() && found->path.starts_with(below);
}

Result<void> VersionSwitch::remove_empty_folders() {
  for (auto path = maybe_empty_.rbegin(); path != maybe_empty_.rend();
       ++path) {  // longer paths first
    HFD_TRY(const auto row, row_at(transaction_, *path));
    if (!row || row->node.kind != NodeKind::folder || next_needs_folder(*path)) {
      continue;
    }
    HFD_TRY(const bool empty, is_empty_folder(transaction_, row->node.id));
    if (empty) {
      HFD_TRY_VOID(detach(*row));
    }
  }
  return {};
}

Result<void> VersionSwitch::apply(const Entry* before, const Entry& after) {
  HFD_TRY(const auto row, row_at(transaction_, after.path));
  if (!row) {
    const bool stays_deleted = before != nullptr && same_content(*before, after);
    return stays_deleted ? Result<void>() : add(after);
  }
  HFD_TRY(const bool is_after, is_as(*row, after));
  bool unchanged_here = is_after;
  if (before != nullptr && !is_after) {
    HFD_TRY(unchanged_here, is_as(*row, *before));
  }
  if (!unchanged_here) {
    return note_beneath(*row, &after);
  }
  return update(*row, before, after);
}

/// Attributes set here stay; the others follow the version.
Result<void> VersionSwitch::update(const journal::Row& row, const Entry* before,
                                   const Entry& after) {
  HFD_TRY(const bool same_bytes, is_as(row, after));
  journal::Row now = row;
  if (!same_bytes) {
    HFD_TRY_VOID(detach(row));
    HFD_TRY(const NodeId id, put_new({row.node.parent, row.node.name}, after));
    HFD_TRY(now, journal::get_row(transaction_, id));
    now.node.uid = row.node.uid;
    now.node.gid = row.node.gid;
  } else {
    changed_.push_back({row.node.parent, row.node.name});
  }
  const bool own_mode =
      before == nullptr || row.node.kind != kind_of(after) || row.node.mode != mode_of(*before);
  const bool own_mtime = before == nullptr || row.node.mtime != before->mtime;
  now.node.mode = own_mode && row.node.kind == kind_of(after) ? row.node.mode : mode_of(after);
  now.node.mtime = own_mtime && same_bytes ? row.node.mtime : after.mtime;
  now.node.ctime = base::now_utc();
  HFD_TRY_VOID(journal::put_row(transaction_, now));
  return note_beneath(now, &after);
}

/// The folder and name of a path, made as needed; nothing when a file stands in the way.
Result<std::optional<VersionSwitch::Place>> VersionSwitch::make_place(std::string_view path) {
  NodeId folder = root_node;
  for (std::size_t slash = path.find('/'); slash != path.npos; slash = path.find('/')) {
    const std::string name(path.substr(0, slash));
    path.remove_prefix(slash + 1);
    HFD_TRY(const auto id, journal::find_name(transaction_, folder, name));
    if (!id) {
      Entry implied;
      implied.kind = Entry::Kind::folder;
      implied.mtime = next_.manifest.time;
      HFD_TRY(folder, put_new({folder, name}, implied));
      continue;
    }
    HFD_TRY(const journal::Row row, journal::get_row(transaction_, *id));
    if (row.node.kind != NodeKind::folder) {
      return std::optional<Place>();
    }
    folder = *id;
  }
  return std::optional<Place>(Place{folder, std::string(path)});
}

Result<NodeId> VersionSwitch::put_new(const Place& place, const Entry& entry) {
  journal::Row row;
  Node& node = row.node;
  node.id = state_.next_id++;
  node.parent = place.parent;
  node.name = place.name;
  node.kind = kind_of(entry);
  node.mode = mode_of(entry);
  node.uid = owner_.uid;
  node.gid = owner_.gid;
  node.bytes = entry.kind == Entry::Kind::symlink ? entry.symlink_target.size() : entry.bytes;
  node.mtime = node.atime = entry.mtime;
  node.ctime = base::now_utc();
  node.place = publish::Place::published;
  node.content = entry.sha256;
  node.symlink_target = entry.symlink_target;
  row.from_version = true;
  if (entry.kind == Entry::Kind::file) {
    node.beneath = PublishedContent{entry.sha256, entry.bytes, entry.mtime, entry.executable};
  }
  HFD_TRY_VOID(journal::put_row(transaction_, row));
  HFD_TRY_VOID(journal::put_name(transaction_, place.parent, place.name, node.id));
  HFD_TRY_VOID(touch_folder(transaction_, place.parent));
  changed_.push_back({place.parent, place.name});
  return node.id;
}

Result<void> VersionSwitch::add(const Entry& entry) {
  HFD_TRY(const auto place, make_place(entry.path));
  if (!place) {
    return {};
  }
  HFD_TRY_VOID(put_new(*place, entry));
  return {};
}

Result<void> VersionSwitch::note_published(const Snapshot& snapshot) {
  for (const Entry& entry : next_.manifest.files) {
    HFD_TRY(const auto row, row_at(transaction_, entry.path));
    if (row) {
      HFD_TRY_VOID(note_beneath(*row, &entry));
      continue;
    }
    const auto seen = std::lower_bound(
        snapshot.entries.begin(), snapshot.entries.end(), entry.path,
        [](const SnapshotEntry& one, const std::string& path) { return one.path < path; });
    if (seen == snapshot.entries.end() || seen->path != entry.path) {
      HFD_TRY_VOID(add(entry));  // not removed here meanwhile: others put it into the version
    }
  }
  return {};
}

}  // namespace hfd::publish
