// SPDX-License-Identifier: Apache-2.0
// The one WorkTree there is, on a staging folder. Split over work_tree.cpp (opening, attributes,
// bytes), work_tree_names.cpp (names), work_tree_versions.cpp (versions beneath),
// work_tree_publish.cpp (snapshot, published) and work_tree_recovery.cpp (after a crash). Used by
// those only.
//
// Order on disk, each step before the next: data file made -> row committed; row gone, and that
// synced -> data file removed. So power loss, which may take back unsynced commits, never leaves a
// row without bytes that were promised. Removal waits in `retired_` so that not each unlink costs a
// disk flush.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "publish/journal.hpp"
#include "publish/work_tree.hpp"

namespace hfd::publish {

/// An Error with the errno that POSIX wants; `object` is a name or path.
Error posix_error(int number, std::string_view object);

class LocalWorkTree final : public WorkTree {
 public:
  static Result<std::unique_ptr<LocalWorkTree>> open(const WorkTreeOptions& options);
  ~LocalWorkTree() override;

  std::optional<VersionId> version() const override;
  Result<std::vector<ChangedName>> switch_to(const lineage::Version* previous,
                                             const lineage::Version& next) override;

  Result<Node> get(NodeId id) const override;
  Result<Node> lookup(NodeId parent, const std::string& name) const override;
  Result<std::vector<Node>> list(NodeId parent, const std::string& after,
                                 std::size_t count_max) const override;
  Result<Node> create_file(const NewNode& node) override;
  Result<Node> make_folder(const NewNode& node) override;
  Result<Node> make_symlink(const NewNode& node, const std::string& target) override;
  Result<Node> unlink(NodeId parent, const std::string& name, bool is_open) override;
  Result<void> remove_folder(NodeId parent, const std::string& name) override;
  Result<void> rename(NodeId parent, const std::string& name, NodeId new_parent,
                      const std::string& new_name, RenameMode mode,
                      const std::function<bool(NodeId)>& replaced_is_open) override;
  Result<Node> set_attributes(NodeId id, const AttributeChange& change) override;
  void drop(NodeId id) override;

  Result<base::Fd> open_data(NodeId id) const override;
  Result<Node> stage(NodeId id, std::uint64_t bytes,
                     const std::function<Result<void>(const base::Fd&)>& fill) override;
  Result<void> begin_writing(NodeId id) override;
  Result<Node> settled(NodeId id, std::optional<base::UnixNanoseconds> mtime, bool closed) override;
  Result<void> sync(NodeId id) override;

  std::uint64_t generation() const override { return generation_.load(); }
  base::SteadyClock::time_point last_change() const override;
  Result<Snapshot> snapshot() const override;
  Result<void> published(const Snapshot& snapshot, const lineage::Version& version) override;
  Result<std::vector<StagedFile>> staged_files() const override;
  Result<void> forgive() override;
  std::string temporary_folder() const override { return options_.folder + "/tmp"; }
  const std::string& folder() const override { return options_.folder; }

 private:
  /// What a change is to the tree.
  struct ChangeKind {
    bool counts;  ///< moves generation() and last_change()
    bool frees;  ///< may use the reserve on a full disk: it gives space back, or must not fail late
  };
  static constexpr ChangeKind adds{true, false};
  static constexpr ChangeKind frees{true, true};
  static constexpr ChangeKind bookkeeping{false, true};

  /// Work within a write transaction. May be run again on a full disk: sets its outputs anew each
  /// time.
  using Change = std::function<Result<void>(store::Transaction&, journal::TreeState&)>;
  struct Retired {
    NodeId id = 0;
    std::uint64_t bytes = 0;
  };
  struct Detached {
    std::vector<Retired> data;  ///< data files to remove after the commit
  };

  explicit LocalWorkTree(const WorkTreeOptions& options) : options_(options) {}
  Result<void> lock_folder();
  Result<void> open_journal();
  Result<void> start_state();
  Result<void> start_anew();
  Result<void> recover();
  Result<bool> holds_data() const;

  Result<void> change(ChangeKind kind, const Change& body);
  Result<void> change_once(ChangeKind kind, const Change& body);
  std::string data_path(NodeId id) const { return options_.folder + "/data/" + std::to_string(id); }
  void make_reserve();
  bool release_reserve();
  void retire(const std::vector<Retired>& data);
  void remove_retired();

  Result<journal::Row> add_row(store::Transaction& transaction, journal::TreeState& state,
                               const NewNode& node, NodeKind kind, const std::string& target);
  Result<void> detach(store::Transaction& transaction, const journal::Row& row, bool is_open,
                      Detached& detached);
  Result<void> exchange(store::Transaction& transaction, journal::Row a, journal::Row b);

  friend class VersionSwitch;

  const WorkTreeOptions options_;
  base::Fd lock_;
  std::unique_ptr<store::Tables> tables_;
  std::atomic<std::uint64_t> generation_{0};
  std::atomic<std::uint64_t> stage_counter_{0};

  mutable base::Mutex mutex_;  // a leaf: nothing is called with it held
  std::optional<VersionId> version_ HFD_GUARDED_BY(mutex_);
  base::SteadyClock::time_point last_change_ HFD_GUARDED_BY(mutex_) = base::SteadyClock::now();
  std::vector<Retired> retired_ HFD_GUARDED_BY(mutex_);
  std::uint64_t retired_bytes_ HFD_GUARDED_BY(mutex_) = 0;
};

// Shared by the parts.
/// `parent` as a folder that can take names: ENOTDIR, ENOENT when it was removed.
Result<journal::Row> folder_row(const store::Transaction& transaction, NodeId parent);
/// Sets the times of a folder whose entries changed.
Result<void> touch_folder(store::Transaction& transaction, NodeId folder);
Result<bool> is_empty_folder(const store::Transaction& transaction, NodeId folder);
/// The path of a named node; empty for the root and for a node without a name.
Result<std::string> path_of(const store::Transaction& transaction, const journal::Row& row);
/// Nothing when no such path.
Result<std::optional<journal::Row>> row_at(const store::Transaction& transaction,
                                           std::string_view path);

}  // namespace hfd::publish
