// SPDX-License-Identifier: Apache-2.0
// What open() does about an earlier daemon that died, and the lists of staged files that status
// shows.
#include <charconv>
#include <set>
#include <utility>

#include <sys/stat.h>

#include "base/log.hpp"
#include "publish/work_tree_local.hpp"

namespace hfd::publish {
namespace {

/// What a staged file is after a daemon died or the machine went down.
enum class Fate { as_it_was, incomplete, back_to_version, gone };

Fate fate_of(const journal::Row& row, bool data_is_there, bool power_lost) {
  const bool promised = row.synced || !power_lost;
  if (!data_is_there && !promised) {
    // Never fsynced, and nothing of it reached the disk: as if it had not been written.
    return row.node.beneath ? Fate::back_to_version : Fate::gone;
  }
  if (!data_is_there || row.node.writing || !promised) {
    return Fate::incomplete;
  }
  return Fate::as_it_was;
}

void go_back_to_version(Node& node) {
  node.place = Place::published;
  node.content = node.beneath->content;
  node.bytes = node.beneath->bytes;
  node.mtime = node.beneath->mtime;
  node.writing = false;
  node.left_by_crash = false;
}

Result<void> forget(store::Transaction& writing, const journal::Row& row) {
  if (row.node.parent != 0) {
    HFD_TRY_VOID(journal::remove_name(writing, row.node.parent, row.node.name));
  }
  return journal::remove_row(writing, row.node.id);
}

std::optional<NodeId> id_in(const std::string& name) {
  NodeId id = 0;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), id);
  return bad == std::errc() && end == name.data() + name.size() ? std::optional<NodeId>(id)
                                                                : std::nullopt;
}

}  // namespace

Result<void> LocalWorkTree::recover() {
  std::vector<journal::Row> staged;
  std::vector<journal::Row> nameless;
  {
    HFD_TRY(const auto reading, tables_->begin_read());
    const auto done = journal::scan_rows(reading, [&](const journal::Row& row) -> Result<void> {
      if (row.node.parent == 0 && row.node.id != root_node) {
        nameless.push_back(row);
      } else if (row.node.kind == NodeKind::file && row.node.place == Place::staged) {
        staged.push_back(row);
      }
      return {};
    });
    HFD_TRY_VOID(done);
  }
  std::set<NodeId> keep;
  const auto done =
      change(bookkeeping, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
        keep.clear();
        for (const journal::Row& row : nameless) {
          HFD_TRY_VOID(forget(writing, row));
        }
        for (journal::Row row : staged) {
          struct stat status {};
          const bool there = ::stat(data_path(row.node.id).c_str(), &status) == 0;
          const Fate fate = fate_of(row, there, tables_->went_back());
          if (fate == Fate::gone) {
            HFD_TRY_VOID(forget(writing, row));
            continue;
          }
          if (fate == Fate::back_to_version) {
            go_back_to_version(row.node);
          } else {
            keep.insert(row.node.id);
            row.lost = !there;
            row.node.left_by_crash = row.node.left_by_crash || fate == Fate::incomplete;
            row.node.writing = false;
            row.node.bytes = there ? static_cast<std::uint64_t>(status.st_size) : row.node.bytes;
          }
          HFD_TRY_VOID(journal::put_row(writing, row));
        }
        return {};
      });
  HFD_TRY_VOID(done);
  HFD_TRY_VOID(tables_->sync());
  HFD_TRY(const auto names, base::list_folder(options_.folder + "/data"));
  for (const std::string& name : names) {
    const auto id = id_in(name);
    if (!id || keep.count(*id) == 0) {
      HFD_TRY_VOID(base::remove_file(options_.folder + "/data/" + name));
    }
  }
  return {};
}

Result<std::vector<StagedFile>> LocalWorkTree::staged_files() const {
  std::vector<StagedFile> files;
  HFD_TRY(const auto reading, tables_->begin_read());
  HFD_TRY(const auto ids, journal::staged_ids(reading));
  for (const NodeId id : ids) {
    HFD_TRY(const journal::Row row, journal::get_row(reading, id));
    if (row.node.parent == 0) {
      continue;  // unlinked: nobody's file any more
    }
    StagedFile file;
    file.id = id;
    file.bytes = row.node.bytes;
    file.writing = row.node.writing;
    file.left_by_crash = row.node.left_by_crash;
    file.lost = row.lost;
    HFD_TRY(file.path, path_of(reading, row));
    file.junk = is_junk_name(row.node.name) && !row.from_version;
    for (NodeId above = row.node.parent; above != root_node && !file.junk;) {
      HFD_TRY(const journal::Row folder, journal::get_row(reading, above));
      file.junk = is_junk_name(folder.node.name) && !folder.from_version;
      above = folder.node.parent;
    }
    files.push_back(std::move(file));
  }
  return files;
}

Result<void> LocalWorkTree::forgive() {
  return change({true, true},
                [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
                  HFD_TRY(const auto ids, journal::staged_ids(writing));
                  for (const NodeId id : ids) {
                    HFD_TRY(journal::Row row, journal::get_row(writing, id));
                    if (row.node.left_by_crash && !row.lost) {
                      row.node.left_by_crash = false;
                      HFD_TRY_VOID(journal::put_row(writing, row));
                    }
                  }
                  return {};
                });
}

}  // namespace hfd::publish
