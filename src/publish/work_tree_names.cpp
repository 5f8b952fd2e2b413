// SPDX-License-Identifier: Apache-2.0
// Names of the work tree: lookup, create, unlink, rename. Each is one transaction that checks the
// rules of POSIX first; errno values are those of rename(2), unlink(2) and so on.
#include <cerrno>
#include <utility>

#include <fcntl.h>

#include "publish/work_tree_local.hpp"

namespace hfd::publish {
namespace {

constexpr std::size_t target_bytes_max = 4095;  // PATH_MAX of the kernel
constexpr std::string_view reserved_name = ".hfdelta";
constexpr int folder_depth_max = 4096;  // a longer chain of parents can only be a damaged journal

/// Rules for any name; the reserved one is `permission` where a change is wanted.
Result<void> check_name(NodeId parent, std::string_view name) {
  if (name.size() > lineage::name_bytes_max) {
    return posix_error(ENAMETOOLONG, name);
  }
  if (name.empty() || name == "." || name == ".." || name.find('/') != name.npos ||
      name.find('\0') != name.npos) {
    return posix_error(EINVAL, name);
  }
  if (parent == root_node && name == reserved_name) {
    return posix_error(EPERM, name);
  }
  return {};
}

Result<std::optional<journal::Row>> find_entry(const store::Transaction& transaction, NodeId parent,
                                               std::string_view name) {
  HFD_TRY(const auto id, journal::find_name(transaction, parent, name));
  if (!id) {
    return std::optional<journal::Row>();
  }
  HFD_TRY(auto row, journal::find_row(transaction, *id));
  if (!row) {
    return Error{ErrorCode::corrupt, "a name without a node in the staging journal",
                 std::string(name)};
  }
  return row;
}

Result<journal::Row> get_entry(const store::Transaction& transaction, NodeId parent,
                               std::string_view name) {
  HFD_TRY(auto row, find_entry(transaction, parent, name));
  if (!row) {
    return posix_error(ENOENT, name);
  }
  return *std::move(row);
}

/// True when `folder` is `above` or lies below it.
Result<bool> is_below(const store::Transaction& transaction, NodeId folder, NodeId above) {
  for (int depth = 0; depth < folder_depth_max; ++depth) {
    if (folder == above) {
      return true;
    }
    if (folder == root_node || folder == 0) {
      return false;
    }
    HFD_TRY(const journal::Row row, journal::get_row(transaction, folder));
    folder = row.node.parent;
  }
  return Error{ErrorCode::corrupt, "a loop of folders in the staging journal"};
}

/// What a path that gets other bytes keeps from the file that had the name.
void inherit_beneath(journal::Row& row, const std::optional<journal::Row>& replaced) {
  row.from_version = replaced && replaced->from_version;
  row.node.beneath = replaced ? replaced->node.beneath : std::nullopt;
}

Result<void> check_replace(const store::Transaction& transaction, const Node& moved,
                           const Node& replaced) {
  if (replaced.kind != NodeKind::folder) {
    return moved.kind == NodeKind::folder ? Result<void>(posix_error(ENOTDIR, replaced.name))
                                          : Result<void>();
  }
  if (moved.kind != NodeKind::folder) {
    return posix_error(EISDIR, replaced.name);
  }
  HFD_TRY(const bool empty, is_empty_folder(transaction, replaced.id));
  return empty ? Result<void>() : Result<void>(posix_error(ENOTEMPTY, replaced.name));
}

Result<void> place(store::Transaction& transaction, journal::Row& row, NodeId parent,
                   const std::string& name) {
  row.node.parent = parent;
  row.node.name = name;
  row.node.ctime = base::now_utc();
  HFD_TRY_VOID(journal::put_row(transaction, row));
  return journal::put_name(transaction, parent, name, row.node.id);
}

}  // namespace

// --- shared by the parts
// ---------------------------------------------------------------------------

Result<journal::Row> folder_row(const store::Transaction& transaction, NodeId parent) {
  HFD_TRY(auto row, journal::get_row(transaction, parent));
  if (row.node.kind != NodeKind::folder) {
    return posix_error(ENOTDIR, row.node.name);
  }
  if (row.node.parent == 0 && parent != root_node) {
    return posix_error(ENOENT, row.node.name);  // removed, though somebody still stands in it
  }
  return row;
}

Result<void> touch_folder(store::Transaction& transaction, NodeId folder) {
  HFD_TRY(journal::Row row, journal::get_row(transaction, folder));
  row.node.mtime = row.node.ctime = base::now_utc();
  return journal::put_row(transaction, row);
}

Result<bool> is_empty_folder(const store::Transaction& transaction, NodeId folder) {
  HFD_TRY(const auto ids, journal::ids_in(transaction, folder, {}, 1));
  return ids.empty();
}

Result<std::string> path_of(const store::Transaction& transaction, const journal::Row& row) {
  std::string path = row.node.name;
  NodeId parent = row.node.parent;
  for (int depth = 0; parent != root_node && parent != 0; ++depth) {
    if (depth > folder_depth_max) {
      return Error{ErrorCode::corrupt, "a loop of folders in the staging journal"};
    }
    HFD_TRY(const journal::Row above, journal::get_row(transaction, parent));
    path = above.node.name + "/" + path;
    parent = above.node.parent;
  }
  return path;
}

Result<std::optional<journal::Row>> row_at(const store::Transaction& transaction,
                                           std::string_view path) {
  NodeId folder = root_node;
  while (true) {
    const std::size_t slash = path.find('/');
    HFD_TRY(auto row, find_entry(transaction, folder, path.substr(0, slash)));
    if (!row || slash == path.npos) {
      return row;
    }
    if (row->node.kind != NodeKind::folder) {
      return std::optional<journal::Row>();
    }
    folder = row->node.id;
    path.remove_prefix(slash + 1);
  }
}

// --- reading
// -----------------------------------------------------------------------------------------

Result<Node> LocalWorkTree::lookup(NodeId parent, const std::string& name) const {
  if (name.size() > lineage::name_bytes_max) {
    return posix_error(ENAMETOOLONG, name);
  }
  HFD_TRY(const auto reading, tables_->begin_read());
  HFD_TRY(auto row, find_entry(reading, parent, name));
  if (!row) {
    HFD_TRY_VOID(folder_row(reading, parent));
    return posix_error(ENOENT, name);
  }
  return std::move(row->node);
}

Result<std::vector<Node>> LocalWorkTree::list(NodeId parent, const std::string& after,
                                              std::size_t count_max) const {
  HFD_TRY(const auto reading, tables_->begin_read());
  HFD_TRY(const journal::Row folder, journal::get_row(reading, parent));
  if (folder.node.kind != NodeKind::folder) {
    return posix_error(ENOTDIR, folder.node.name);
  }
  HFD_TRY(const auto ids, journal::ids_in(reading, parent, after, count_max));
  std::vector<Node> nodes;
  nodes.reserve(ids.size());
  for (const NodeId id : ids) {
    HFD_TRY(auto row, journal::get_row(reading, id));
    nodes.push_back(std::move(row.node));
  }
  return nodes;
}

// --- making
// ------------------------------------------------------------------------------------------

Result<journal::Row> LocalWorkTree::add_row(store::Transaction& transaction,
                                            journal::TreeState& state, const NewNode& node,
                                            NodeKind kind, const std::string& target) {
  HFD_TRY_VOID(check_name(node.parent, node.name));
  HFD_TRY_VOID(folder_row(transaction, node.parent));
  HFD_TRY(const auto there, journal::find_name(transaction, node.parent, node.name));
  if (there) {
    return posix_error(EEXIST, node.name);
  }
  journal::Row row;
  row.node.id = state.next_id++;
  row.node.parent = node.parent;
  row.node.name = node.name;
  row.node.kind = kind;
  row.node.mode = node.mode & 07777U;
  row.node.uid = node.uid;
  row.node.gid = node.gid;
  row.node.mtime = row.node.atime = row.node.ctime = base::now_utc();
  row.node.symlink_target = target;
  row.node.bytes = target.size();
  if (kind == NodeKind::file) {
    row.node.change = 1;
    row.node.writing = true;
    HFD_TRY_VOID(base::open_file(data_path(row.node.id), O_RDWR | O_CREAT | O_TRUNC));
  }
  HFD_TRY_VOID(journal::put_row(transaction, row));
  HFD_TRY_VOID(journal::put_name(transaction, node.parent, node.name, row.node.id));
  HFD_TRY_VOID(touch_folder(transaction, node.parent));
  return row;
}

Result<Node> LocalWorkTree::create_file(const NewNode& node) {
  journal::Row row;
  const auto done =
      change(adds, [&](store::Transaction& writing, journal::TreeState& state) -> Result<void> {
        HFD_TRY(row, add_row(writing, state, node, NodeKind::file, {}));
        return {};
      });
  HFD_TRY_VOID(done);
  return std::move(row.node);
}

Result<Node> LocalWorkTree::make_folder(const NewNode& node) {
  journal::Row row;
  const auto done =
      change(adds, [&](store::Transaction& writing, journal::TreeState& state) -> Result<void> {
        HFD_TRY(row, add_row(writing, state, node, NodeKind::folder, {}));
        return {};
      });
  HFD_TRY_VOID(done);
  return std::move(row.node);
}

Result<Node> LocalWorkTree::make_symlink(const NewNode& node, const std::string& target) {
  if (target.empty() || target.find('\0') != target.npos) {
    return posix_error(target.empty() ? ENOENT : EINVAL, node.name);
  }
  if (target.size() > target_bytes_max) {
    return posix_error(ENAMETOOLONG, node.name);
  }
  journal::Row row;
  const auto done =
      change(adds, [&](store::Transaction& writing, journal::TreeState& state) -> Result<void> {
        HFD_TRY(row, add_row(writing, state, node, NodeKind::symlink, target));
        return {};
      });
  HFD_TRY_VOID(done);
  return std::move(row.node);
}

// --- removing
// ----------------------------------------------------------------------------------------

/// Takes the name of `row` away. An open node lives on without one; else its row goes, and its
/// bytes after the commit.
Result<void> LocalWorkTree::detach(store::Transaction& transaction, const journal::Row& row,
                                   bool is_open, Detached& detached) {
  HFD_TRY_VOID(journal::remove_name(transaction, row.node.parent, row.node.name));
  if (is_open) {
    journal::Row nameless = row;
    nameless.node.parent = 0;
    nameless.node.name.clear();
    nameless.node.ctime = base::now_utc();
    return journal::put_row(transaction, nameless);
  }
  if (row.node.kind == NodeKind::file && row.node.place == Place::staged) {
    detached.data.push_back({row.node.id, row.node.bytes});
  }
  return journal::remove_row(transaction, row.node.id);
}

Result<Node> LocalWorkTree::unlink(NodeId parent, const std::string& name, bool is_open) {
  Node out;
  Detached detached;
  HFD_TRY_VOID(check_name(parent, name));
  const auto done =
      change(frees, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
        detached = {};
        HFD_TRY_VOID(folder_row(writing, parent));
        HFD_TRY(const journal::Row row, get_entry(writing, parent, name));
        if (row.node.kind == NodeKind::folder) {
          return posix_error(EISDIR, name);
        }
        HFD_TRY_VOID(detach(writing, row, is_open, detached));
        out = row.node;
        out.parent = 0;
        return touch_folder(writing, parent);
      });
  HFD_TRY_VOID(done);
  retire(detached.data);
  return out;
}

Result<void> LocalWorkTree::remove_folder(NodeId parent, const std::string& name) {
  HFD_TRY_VOID(check_name(parent, name));
  return change(frees, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
    HFD_TRY_VOID(folder_row(writing, parent));
    HFD_TRY(const journal::Row row, get_entry(writing, parent, name));
    if (row.node.kind != NodeKind::folder) {
      return posix_error(ENOTDIR, name);
    }
    HFD_TRY(const bool empty, is_empty_folder(writing, row.node.id));
    if (!empty) {
      return posix_error(ENOTEMPTY, name);
    }
    Detached none;
    HFD_TRY_VOID(detach(writing, row, true, none));  // somebody may stand in it: until drop()
    return touch_folder(writing, parent);
  });
}

void LocalWorkTree::drop(NodeId id) {
  if (id == root_node) {
    return;
  }
  {
    // Most drops are of nodes with a name (the kernel forgot them): those need no write
    // transaction.
    const auto reading = tables_->begin_read();
    const auto row = reading.ok() ? journal::find_row(*reading, id)
                                  : Result<std::optional<journal::Row>>(reading.error());
    if (!row.ok() || !*row || (*row)->node.parent != 0) {
      return;
    }
  }
  std::vector<Retired> data;
  const auto done =
      change(bookkeeping, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
        data.clear();
        HFD_TRY(const auto row, journal::find_row(writing, id));
        if (!row || row->node.parent != 0) {
          return {};
        }
        if (row->node.kind == NodeKind::file && row->node.place == Place::staged) {
          data.push_back({id, row->node.bytes});
        }
        return journal::remove_row(writing, id);
      });
  if (done.ok()) {
    retire(data);  // else open() drops it: it has no name
  }
}

// --- renaming
// ----------------------------------------------------------------------------------------

Result<void> LocalWorkTree::exchange(store::Transaction& transaction, journal::Row a,
                                     journal::Row b) {
  HFD_TRY(const bool a_below_b, is_below(transaction, a.node.parent, b.node.id));
  HFD_TRY(const bool b_below_a, is_below(transaction, b.node.parent, a.node.id));
  if (a_below_b || b_below_a) {
    return posix_error(EINVAL, a.node.name);
  }
  const Node place_of_a = a.node;
  std::swap(a.from_version, b.from_version);
  std::swap(a.node.beneath, b.node.beneath);
  a.node.left_by_crash = a.lost;
  b.node.left_by_crash = b.lost;
  HFD_TRY_VOID(place(transaction, a, b.node.parent, b.node.name));
  return place(transaction, b, place_of_a.parent, place_of_a.name);
}

Result<void> LocalWorkTree::rename(NodeId parent, const std::string& name, NodeId new_parent,
                                   const std::string& new_name, RenameMode mode,
                                   const std::function<bool(NodeId)>& replaced_is_open) {
  HFD_TRY_VOID(check_name(parent, name));
  HFD_TRY_VOID(check_name(new_parent, new_name));
  Detached detached;
  const auto body = [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
    detached = {};
    HFD_TRY_VOID(folder_row(writing, parent));
    HFD_TRY_VOID(folder_row(writing, new_parent));
    HFD_TRY(journal::Row moved, get_entry(writing, parent, name));
    HFD_TRY(const auto replaced, find_entry(writing, new_parent, new_name));
    if (replaced && mode == RenameMode::no_replace) {
      return posix_error(EEXIST, new_name);
    }
    if (replaced && replaced->node.id == moved.node.id) {
      return {};
    }
    if (mode == RenameMode::exchange) {
      HFD_TRY_VOID(replaced ? exchange(writing, moved, *replaced)
                            : Result<void>(posix_error(ENOENT, new_name)));
    } else {
      HFD_TRY(const bool into_itself, is_below(writing, new_parent, moved.node.id));
      if (into_itself) {
        return posix_error(EINVAL, new_name);
      }
      if (replaced) {
        HFD_TRY_VOID(check_replace(writing, moved.node, replaced->node));
        HFD_TRY_VOID(detach(writing, *replaced, replaced_is_open(replaced->node.id), detached));
      }
      HFD_TRY_VOID(journal::remove_name(writing, parent, name));
      inherit_beneath(moved, replaced);
      moved.node.left_by_crash = moved.lost;  // a name given by hand means: this is what I want
      HFD_TRY_VOID(place(writing, moved, new_parent, new_name));
    }
    HFD_TRY_VOID(touch_folder(writing, parent));
    return parent == new_parent ? Result<void>() : touch_folder(writing, new_parent);
  };
  HFD_TRY_VOID(change(frees, body));
  retire(detached.data);
  return {};
}

}  // namespace hfd::publish
