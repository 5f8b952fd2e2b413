// SPDX-License-Identifier: Apache-2.0
// Lays another version under a work tree, within one transaction. Used by work_tree_versions.cpp
// and work_tree_publish.cpp only.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "publish/journal.hpp"
#include "publish/work_tree_local.hpp"

namespace hfd::publish {

/// The entry of a path; null when there is none.
const lineage::FileEntry* find_entry_at(const lineage::Manifest& manifest, std::string_view path);

struct Owner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

class VersionSwitch {
 public:
  VersionSwitch(store::Transaction& transaction, journal::TreeState& state, Owner owner,
                const lineage::Version& next)
      : transaction_(transaction), state_(state), owner_(owner), next_(next) {}

  /// The work of WorkTree::switch_to.
  Result<void> run(const lineage::Version* previous);
  /// The rest of WorkTree::published: every path of the version knows now what is beneath it, and
  /// files that others put into the version (a rebase) appear.
  Result<void> note_published(const Snapshot& snapshot);
  std::vector<ChangedName> take_changed() { return std::move(changed_); }

 private:
  using Entry = lineage::FileEntry;
  struct Place {
    NodeId parent = 0;
    std::string name;
  };

  Result<void> remove(const Entry& before);
  Result<void> remove_empty_folders();
  Result<void> apply(const Entry* before, const Entry& after);
  Result<void> update(const journal::Row& row, const Entry* before, const Entry& after);
  Result<void> add(const Entry& entry);
  Result<void> detach(const journal::Row& row);
  Result<bool> is_as(const journal::Row& row, const Entry& entry);
  Result<void> note_beneath(journal::Row row, const Entry* entry);
  Result<std::optional<Place>> make_place(std::string_view path);
  Result<NodeId> put_new(const Place& place, const Entry& entry);
  bool next_needs_folder(const std::string& path) const;

  store::Transaction& transaction_;
  journal::TreeState& state_;
  Owner owner_;
  const lineage::Version& next_;
  std::set<std::string> maybe_empty_;
  std::vector<ChangedName> changed_;
};

}  // namespace hfd::publish
