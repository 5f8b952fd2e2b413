// SPDX-License-Identifier: Apache-2.0
// The writable tree of a mount: names, attributes and where each file's bytes are, durable in the
// staging folder. Starts as the files of a version; writers change it; publish turns its difference
// from that version into the next one. Every change is one transaction, so a killed daemon finds
// the tree exactly as the last answered call left it. Used by vfs (all file operations) and
// publish. Knows no kernel and no remote; blocking only on the local disk. Thread-safe.
//
// On disk: <staging>/journal/ (LMDB: nodes, names, meta), <staging>/data/<node id> (bytes of staged
// files, sparse), <staging>/lock (flock: one daemon a staging), <staging>/tmp/ (objects being
// encoded).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hfdeltafs/types.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "lineage/bucket.hpp"

namespace hfd::publish {

/// Inode number: one file content and identity; never used again. 1 is the root.
using NodeId = std::uint64_t;
inline constexpr NodeId root_node = 1;

enum class NodeKind : std::uint8_t { file = 0, folder = 1, symlink = 2 };

/// Where a file's bytes are.
enum class Place : std::uint8_t {
  published = 0,  ///< content of a version: `content`
  staged = 1,     ///< in data/<id>
};

/// What the version beneath has at the path of a file.
struct PublishedContent {
  ContentHash content;
  std::uint64_t bytes = 0;
  base::UnixNanoseconds mtime = 0;
  bool executable = false;
};

struct Node {
  NodeId id = 0;
  NodeId parent = 0;  ///< 0 for an unlinked file that is still open
  std::string name;
  NodeKind kind = NodeKind::file;
  std::uint32_t mode = 0;  ///< permission bits (07777)
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t bytes = 0;  ///< file: size; symlink: length of the target
  base::UnixNanoseconds mtime = 0;
  base::UnixNanoseconds atime = 0;
  base::UnixNanoseconds ctime = 0;
  Place place = Place::staged;
  ContentHash content;  ///< published files only
  std::string symlink_target;
  std::uint64_t change = 0;  ///< counts changes of content; a publish compares it with its snapshot
  bool writing = false;      ///< a writer has it open
  bool left_by_crash =
      false;  ///< was open for writing when a daemon died: incomplete, see StagedFile
  /// Files: what a publish that leaves this node out must put at its path, so that the version's
  /// own file stays. Follows the path, not the bytes: a rename over a file inherits it.
  std::optional<PublishedContent> beneath;
};

/// What setattr may change; absent = keep.
struct AttributeChange {
  std::optional<std::uint32_t> mode, uid, gid;
  std::optional<base::UnixNanoseconds> mtime, atime;
};

struct NewNode {
  NodeId parent = 0;
  std::string name;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

enum class RenameMode { replace, no_replace, exchange };

/// Staging belongs to one bucket and ref; opening it for another while it holds data is `busy` or
/// `conflict`.
struct WorkTreeOptions {
  std::string folder;
  std::string bucket_uri;
  std::string ref;
  std::uint32_t uid = 0;  ///< owner shown for files that come from a version
  std::uint32_t gid = 0;
  bool assume_power_loss = false;  ///< for tests: open as if the machine had gone down
};

/// One staged file, for status and umount.
struct StagedFile {
  NodeId id = 0;
  std::string path;
  std::uint64_t bytes = 0;
  bool writing = false;
  bool junk = false;           ///< a temporary name: kept here, never published
  bool left_by_crash = false;  ///< was open for writing when a daemon died; see forgive()
  bool lost = false;           ///< its data file is gone: reading fails, publishing leaves it out
};

/// A difference in the shown tree after switch_to(): the name to tell the kernel about.
struct ChangedName {
  NodeId parent = 0;
  std::string name;
};

/// The tree at one moment, for a publish: every entry with its path, in path order (bytewise).
/// Local entries with a junk name, or below one, are left out; what a version itself calls so stays
/// in. A file left by a crash is shown as what the version beneath has there (place published), or
/// left out. A node with `writing` set is shown as it is: the publisher waits, or puts `beneath`
/// there.
struct SnapshotEntry {
  std::string path;
  Node node;
};
struct Snapshot {
  std::uint64_t generation = 0;
  std::vector<SnapshotEntry> entries;  ///< without junk names; folders only when empty
};

class WorkTree {
 public:
  /// Opens or makes the staging. `busy` when another daemon holds its lock.
  static Result<std::unique_ptr<WorkTree>> open(const WorkTreeOptions& options);
  virtual ~WorkTree() = default;

  // --- the version beneath -------------------------------------------------------------------
  /// The version that the tree is a change of; nothing for an empty start.
  virtual std::optional<VersionId> version() const = 0;
  /// Makes `next` the version beneath in one transaction. Paths whose entry differs between
  /// `previous` (the present version's manifest, null when none) and `next` get NEW nodes (old node
  /// ids live on for open files), except where this tree has changes of its own: those stay.
  /// Returns the names that now mean something else, or have other attributes. A local deletion
  /// stays unless the content changed. A path that a local entry of another kind stands in the way
  /// of is left out. `stale` when `previous` is not the version beneath. The nodes that lost their
  /// names wait for drop().
  virtual Result<std::vector<ChangedName>> switch_to(const lineage::Version* previous,
                                                     const lineage::Version& next) = 0;

  // --- names ---------------------------------------------------------------------------------
  virtual Result<Node> get(NodeId id) const = 0;  ///< stale when gone
  virtual Result<Node> lookup(NodeId parent, const std::string& name) const = 0;  ///< not_found
  /// Entries of a folder after `after` in name order (bytewise; empty = from the start), at most
  /// `count_max`.
  virtual Result<std::vector<Node>> list(NodeId parent, const std::string& after,
                                         std::size_t count_max) const = 0;
  virtual Result<Node> create_file(const NewNode& node) = 0;  ///< staged, empty, writing
  virtual Result<Node> make_folder(const NewNode& node) = 0;
  virtual Result<Node> make_symlink(const NewNode& node, const std::string& target) = 0;
  /// Removes a name of a file or symlink. A node that `is_open` says is in use lives on without a
  /// name until drop().
  virtual Result<Node> unlink(NodeId parent, const std::string& name, bool is_open) = 0;
  virtual Result<void> remove_folder(
      NodeId parent, const std::string& name) = 0;  ///< io + ENOTEMPTY when not empty
  /// `replaced_is_open` as in unlink, asked about the node that the new name had before.
  virtual Result<void> rename(NodeId parent, const std::string& name, NodeId new_parent,
                              const std::string& new_name, RenameMode mode,
                              const std::function<bool(NodeId)>& replaced_is_open) = 0;
  virtual Result<Node> set_attributes(NodeId id, const AttributeChange& change) = 0;
  /// Forgets a nameless node and its bytes; a node with a name is left alone.
  virtual void drop(NodeId id) = 0;

  // --- bytes ---------------------------------------------------------------------------------
  /// The data file of a staged node. Read-write.
  virtual Result<base::Fd> open_data(NodeId id) const = 0;
  /// Turns a published node into a staged one of `bytes` bytes: an empty data file is made, `fill`
  /// writes the old bytes into it (blocking is its business), then the row is switched. Nothing
  /// changes when `fill` fails. With `bytes` 0, `fill` is not called (truncation).
  virtual Result<Node> stage(NodeId id, std::uint64_t bytes,
                             const std::function<Result<void>(const base::Fd&)>& fill) = 0;
  /// Notes that a writer opened the node / that its content is about to change (before the first
  /// write and again after each settled()): writing = true, change + 1. Makes a file left by a
  /// crash ordinary.
  virtual Result<void> begin_writing(NodeId id) = 0;
  /// Notes the present size and mtime of a staged file (from fstat of its data file; mtime given
  /// when the user set one). `closed`: the last writer is gone, writing = false.
  virtual Result<Node> settled(NodeId id, std::optional<base::UnixNanoseconds> mtime,
                               bool closed) = 0;
  /// fdatasync of the data file, then of the journal: after it, power loss loses nothing. On a node
  /// without a data file only the journal. The settled() that closes a file synced in this writing
  /// syncs again, so that what an fsync promised does not end as "left by a crash".
  virtual Result<void> sync(NodeId id) = 0;

  // --- publish -------------------------------------------------------------------------------
  /// Counts every change made here (also across daemons); equal means nothing happened in between.
  /// switch_to(), published() and changes of atime, uid and gid alone do not count.
  virtual std::uint64_t generation() const = 0;
  /// Time of the last change (steady clock); what the quiet time is measured from.
  virtual base::SteadyClock::time_point last_change() const = 0;
  virtual Result<Snapshot> snapshot() const = 0;
  /// After `version` was claimed from `snapshot` (previous = manifest beneath until now): its
  /// staged files that did not change since become published (same node ids) and their bytes are
  /// dropped from staging unless `keep_data(id)`; files changed since stay staged on top of the new
  /// version.
  virtual Result<void> published(const Snapshot& snapshot, const lineage::Version& version) = 0;
  virtual Result<std::vector<StagedFile>> staged_files() const = 0;
  /// Lets files that were open at a crash be published after all (commit --partial).
  virtual Result<void> forgive() = 0;
  /// Folder for temporary objects of a publish; emptied at open.
  virtual std::string temporary_folder() const = 0;
  virtual const std::string& folder() const = 0;
};

/// True for names that are usable in a mount but never published: editors', savers' and systems'
/// temporary names. The documented list is in work_tree_junk.cpp and README.
bool is_junk_name(std::string_view name);

}  // namespace hfd::publish
