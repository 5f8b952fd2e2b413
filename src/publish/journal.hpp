// SPDX-License-Identifier: Apache-2.0
// The rows of the staging journal: how nodes, names and the state of the tree stand in
// store::Tables. Used by work_tree*.cpp only. Local format, never on a remote; a layout version
// guards it.
//
// nodes   id (8, big endian)               -> row, see encode_row in journal.cpp
// names   parent id (8, big endian), name  -> id (8, big endian)
// staged  id (8, big endian)               -> nothing; the nodes whose bytes are in data/<id>
// meta    "tree"                           -> TreeState; "bucket", "ref" -> text
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "publish/work_tree.hpp"
#include "store/tables.hpp"

namespace hfd::publish::journal {

inline constexpr unsigned table_nodes = 0;
inline constexpr unsigned table_names = 1;
inline constexpr unsigned table_staged = 2;
inline constexpr unsigned table_meta = 3;
std::vector<std::string> table_names_of_journal();

/// A node and what only the journal needs to know.
struct Row {
  Node node;
  bool synced = false;        ///< an fsync was answered for the bytes since the last begin_writing
  bool from_version = false;  ///< the version beneath has this name at this place (any kind)
  bool lost = false;          ///< staged, but the data file was not there at open
};

struct TreeState {
  NodeId next_id = root_node + 1;
  std::uint64_t generation = 1;
  std::optional<VersionId> version;
};

Result<std::optional<Row>> find_row(const store::Transaction& transaction, NodeId id);
/// `stale` when there is none.
Result<Row> get_row(const store::Transaction& transaction, NodeId id);
/// Also keeps the list of staged nodes.
Result<void> put_row(store::Transaction& transaction, const Row& row);
Result<void> remove_row(store::Transaction& transaction, NodeId id);
Result<void> scan_rows(const store::Transaction& transaction,
                       const std::function<Result<void>(const Row&)>& visit);
Result<std::vector<NodeId>> staged_ids(const store::Transaction& transaction);

Result<std::optional<NodeId>> find_name(const store::Transaction& transaction, NodeId parent,
                                        std::string_view name);
Result<void> put_name(store::Transaction& transaction, NodeId parent, std::string_view name,
                      NodeId id);
Result<void> remove_name(store::Transaction& transaction, NodeId parent, std::string_view name);
/// Ids of the entries after `after` (empty: from the start) in name order, at most `count_max`.
Result<std::vector<NodeId>> ids_in(const store::Transaction& transaction, NodeId parent,
                                   std::string_view after, std::size_t count_max);

/// Nothing in a new journal.
Result<std::optional<TreeState>> find_state(const store::Transaction& transaction);
Result<void> put_state(store::Transaction& transaction, const TreeState& state);
Result<std::string> get_text(const store::Transaction& transaction, std::string_view key);
Result<void> put_text(store::Transaction& transaction, std::string_view key, std::string_view text);

}  // namespace hfd::publish::journal
