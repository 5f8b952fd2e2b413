// SPDX-License-Identifier: Apache-2.0
#include "publish/journal.hpp"

#include <cerrno>

#include "base/hash.hpp"

namespace hfd::publish::journal {
namespace {

// A row, little endian:
//   0  1 layout (1)   1  1 kind   2  1 place   3  1 flags   4  4 mode   8  4 uid   12  4 gid
//   16 8 parent   24 8 bytes   32 8 mtime   40 8 atime   48 8 ctime   56 8 change   64 32 content
//   96 2 name bytes   98 2 target bytes   100 … name, target
//   with flag_beneath: 32 content, 8 bytes, 8 mtime, 1 executable
//   last 4: the first four bytes of the xxh3-128 of all before, a damaged row is never believed
constexpr std::uint8_t layout = 1;
constexpr std::uint8_t flag_writing = 1;
constexpr std::uint8_t flag_left_by_crash = 2;
constexpr std::uint8_t flag_synced = 4;
constexpr std::uint8_t flag_from_version = 8;
constexpr std::uint8_t flag_lost = 16;
constexpr std::uint8_t flag_beneath = 32;
constexpr std::size_t check_bytes = 4;

using IdKey = std::array<std::byte, 8>;

IdKey id_key(NodeId id) {
  IdKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<std::byte>(id >> (8 * (key.size() - 1 - i)));
  }
  return key;
}

NodeId id_from(base::ByteView key) {
  NodeId id = 0;
  for (const std::byte b : key.first(8)) {
    id = (id << 8U) | std::to_integer<NodeId>(b);
  }
  return id;
}

base::Bytes name_key(NodeId parent, std::string_view name) {
  base::Bytes key;
  base::append(key, id_key(parent));
  base::append(key, base::as_bytes(name));
  return key;
}

void append_time(base::Bytes& out, base::UnixNanoseconds time) {
  base::append_le(out, static_cast<std::uint64_t>(time));
}

void append_check(base::Bytes& out) {
  const base::Xxh128 hash = base::xxh3_128(out);
  base::append(out, base::ByteView(hash).first(check_bytes));
}

Error damaged() { return Error{ErrorCode::corrupt, "a damaged row in the staging journal"}; }

/// The bytes before the check, when it is right.
Result<base::ByteView> checked(base::ByteView bytes) {
  if (bytes.size() < check_bytes) {
    return damaged();
  }
  const base::ByteView body = bytes.first(bytes.size() - check_bytes);
  const base::Xxh128 hash = base::xxh3_128(body);
  if (std::memcmp(hash.data(), bytes.data() + body.size(), check_bytes) != 0) {
    return damaged();
  }
  return body;
}

std::uint8_t flags_of(const Row& row) {
  return static_cast<std::uint8_t>(
      (row.node.writing ? flag_writing : 0) | (row.node.left_by_crash ? flag_left_by_crash : 0) |
      (row.synced ? flag_synced : 0) | (row.from_version ? flag_from_version : 0) |
      (row.lost ? flag_lost : 0) | (row.node.beneath ? flag_beneath : 0));
}

base::Bytes encode_row(const Row& row) {
  const Node& node = row.node;
  base::Bytes out;
  out.reserve(192 + node.name.size() + node.symlink_target.size());
  base::append_le(out, layout);
  base::append_le(out, static_cast<std::uint8_t>(node.kind));
  base::append_le(out, static_cast<std::uint8_t>(node.place));
  base::append_le(out, flags_of(row));
  base::append_le(out, node.mode);
  base::append_le(out, node.uid);
  base::append_le(out, node.gid);
  base::append_le(out, node.parent);
  base::append_le(out, node.bytes);
  append_time(out, node.mtime);
  append_time(out, node.atime);
  append_time(out, node.ctime);
  base::append_le(out, node.change);
  base::append(out, node.content.bytes);
  base::append_le(out, static_cast<std::uint16_t>(node.name.size()));
  base::append_le(out, static_cast<std::uint16_t>(node.symlink_target.size()));
  base::append(out, base::as_bytes(node.name));
  base::append(out, base::as_bytes(node.symlink_target));
  if (node.beneath) {
    base::append(out, node.beneath->content.bytes);
    base::append_le(out, node.beneath->bytes);
    append_time(out, node.beneath->mtime);
    base::append_le(out, static_cast<std::uint8_t>(node.beneath->executable ? 1 : 0));
  }
  append_check(out);
  return out;
}

Result<void> decode_fields(base::ByteReader& reader, Node& node) {
  HFD_TRY(node.mode, reader.integer<std::uint32_t>());
  HFD_TRY(node.uid, reader.integer<std::uint32_t>());
  HFD_TRY(node.gid, reader.integer<std::uint32_t>());
  HFD_TRY(node.parent, reader.integer<std::uint64_t>());
  HFD_TRY(node.bytes, reader.integer<std::uint64_t>());
  for (base::UnixNanoseconds* const time : {&node.mtime, &node.atime, &node.ctime}) {
    HFD_TRY(const auto value, reader.integer<std::uint64_t>());
    *time = static_cast<base::UnixNanoseconds>(value);
  }
  HFD_TRY(node.change, reader.integer<std::uint64_t>());
  HFD_TRY(const base::ByteView content, reader.take(node.content.bytes.size()));
  std::memcpy(node.content.bytes.data(), content.data(), content.size());
  HFD_TRY(const auto name_bytes, reader.integer<std::uint16_t>());
  HFD_TRY(const auto target_bytes, reader.integer<std::uint16_t>());
  HFD_TRY(const base::ByteView name, reader.take(name_bytes));
  HFD_TRY(const base::ByteView target, reader.take(target_bytes));
  node.name = base::as_text(name);
  node.symlink_target = base::as_text(target);
  return {};
}

Result<PublishedContent> decode_beneath(base::ByteReader& reader) {
  PublishedContent beneath;
  HFD_TRY(const base::ByteView content, reader.take(beneath.content.bytes.size()));
  std::memcpy(beneath.content.bytes.data(), content.data(), content.size());
  HFD_TRY(beneath.bytes, reader.integer<std::uint64_t>());
  HFD_TRY(const auto mtime, reader.integer<std::uint64_t>());
  HFD_TRY(const auto executable, reader.integer<std::uint8_t>());
  beneath.mtime = static_cast<base::UnixNanoseconds>(mtime);
  beneath.executable = executable != 0;
  return beneath;
}

Result<Row> decode_row(NodeId id, base::ByteView bytes) {
  HFD_TRY(const base::ByteView body, checked(bytes));
  base::ByteReader reader(body);
  HFD_TRY(const auto version, reader.integer<std::uint8_t>());
  HFD_TRY(const auto kind, reader.integer<std::uint8_t>());
  HFD_TRY(const auto place, reader.integer<std::uint8_t>());
  HFD_TRY(const auto flags, reader.integer<std::uint8_t>());
  if (version != layout || kind > 2 || place > 1) {
    return damaged();
  }
  Row row;
  row.node.id = id;
  row.node.kind = static_cast<NodeKind>(kind);
  row.node.place = static_cast<Place>(place);
  row.node.writing = (flags & flag_writing) != 0;
  row.node.left_by_crash = (flags & flag_left_by_crash) != 0;
  row.synced = (flags & flag_synced) != 0;
  row.from_version = (flags & flag_from_version) != 0;
  row.lost = (flags & flag_lost) != 0;
  HFD_TRY_VOID(decode_fields(reader, row.node));
  if ((flags & flag_beneath) != 0) {
    HFD_TRY(row.node.beneath, decode_beneath(reader));
  }
  return row;
}

}  // namespace

std::vector<std::string> table_names_of_journal() { return {"nodes", "names", "staged", "meta"}; }

Result<std::optional<Row>> find_row(const store::Transaction& transaction, NodeId id) {
  HFD_TRY(const auto bytes, transaction.get(table_nodes, id_key(id)));
  if (!bytes) {
    return std::optional<Row>();
  }
  HFD_TRY(Row row, decode_row(id, *bytes));
  return std::optional<Row>(std::move(row));
}

Result<Row> get_row(const store::Transaction& transaction, NodeId id) {
  HFD_TRY(auto row, find_row(transaction, id));
  if (!row) {
    Error error{ErrorCode::stale, "the file is gone"};
    error.os_errno = ESTALE;
    return error;
  }
  return *std::move(row);
}

Result<void> put_row(store::Transaction& transaction, const Row& row) {
  const IdKey key = id_key(row.node.id);
  HFD_TRY_VOID(transaction.put(table_nodes, key, encode_row(row)));
  if (row.node.kind != NodeKind::file) {
    return {};
  }
  return row.node.place == Place::staged ? transaction.put(table_staged, key, {})
                                         : transaction.remove(table_staged, key);
}

Result<void> remove_row(store::Transaction& transaction, NodeId id) {
  const IdKey key = id_key(id);
  HFD_TRY_VOID(transaction.remove(table_staged, key));
  return transaction.remove(table_nodes, key);
}

Result<void> scan_rows(const store::Transaction& transaction,
                       const std::function<Result<void>(const Row&)>& visit) {
  Result<void> outcome;
  HFD_TRY_VOID(transaction.scan(table_nodes, {}, [&](base::ByteView key, base::ByteView value) {
    const auto row = key.size() == 8 ? decode_row(id_from(key), value) : Result<Row>(damaged());
    outcome = row.ok() ? visit(*row) : Result<void>(row.error());
    return outcome.ok();
  }));
  return outcome;
}

Result<std::vector<NodeId>> staged_ids(const store::Transaction& transaction) {
  std::vector<NodeId> ids;
  HFD_TRY_VOID(transaction.scan(table_staged, {}, [&](base::ByteView key, base::ByteView) {
    if (key.size() == 8) {
      ids.push_back(id_from(key));
    }
    return true;
  }));
  return ids;
}

Result<std::optional<NodeId>> find_name(const store::Transaction& transaction, NodeId parent,
                                        std::string_view name) {
  HFD_TRY(const auto bytes, transaction.get(table_names, name_key(parent, name)));
  if (!bytes) {
    return std::optional<NodeId>();
  }
  if (bytes->size() != 8) {
    return damaged();
  }
  return std::optional<NodeId>(id_from(*bytes));
}

Result<void> put_name(store::Transaction& transaction, NodeId parent, std::string_view name,
                      NodeId id) {
  return transaction.put(table_names, name_key(parent, name), id_key(id));
}

Result<void> remove_name(store::Transaction& transaction, NodeId parent, std::string_view name) {
  return transaction.remove(table_names, name_key(parent, name));
}

Result<std::vector<NodeId>> ids_in(const store::Transaction& transaction, NodeId parent,
                                   std::string_view after, std::size_t count_max) {
  std::vector<NodeId> ids;
  const IdKey prefix = id_key(parent);
  HFD_TRY_VOID(transaction.scan(table_names, name_key(parent, after),
                                [&](base::ByteView key, base::ByteView value) {
                                  if (ids.size() >= count_max || key.size() <= 8 ||
                                      std::memcmp(key.data(), prefix.data(), 8) != 0) {
                                    return false;
                                  }
                                  if (base::as_text(key.subspan(8)) != after && value.size() == 8) {
                                    ids.push_back(id_from(value));
                                  }
                                  return true;
                                }));
  return ids;
}

// The state: 1 layout, 8 next id, 8 generation, 1 has version, 32 version, 4 check.
Result<std::optional<TreeState>> find_state(const store::Transaction& transaction) {
  HFD_TRY(const auto bytes, transaction.get(table_meta, base::as_bytes("tree")));
  if (!bytes) {
    return std::optional<TreeState>();
  }
  HFD_TRY(const base::ByteView body, checked(*bytes));
  base::ByteReader reader(body);
  TreeState state;
  HFD_TRY(const auto version, reader.integer<std::uint8_t>());
  if (version != layout) {
    return Error{ErrorCode::unsupported,
                 "the staging folder was written by another version of hfdeltafs"};
  }
  HFD_TRY(state.next_id, reader.integer<std::uint64_t>());
  HFD_TRY(state.generation, reader.integer<std::uint64_t>());
  HFD_TRY(const auto has_version, reader.integer<std::uint8_t>());
  HFD_TRY(const base::ByteView id, reader.take(32));
  if (has_version != 0) {
    state.version.emplace();
    std::memcpy(state.version->bytes.data(), id.data(), id.size());
  }
  return std::optional<TreeState>(state);
}

Result<void> put_state(store::Transaction& transaction, const TreeState& state) {
  base::Bytes out;
  out.reserve(64);
  base::append_le(out, layout);
  base::append_le(out, state.next_id);
  base::append_le(out, state.generation);
  base::append_le(out, static_cast<std::uint8_t>(state.version ? 1 : 0));
  base::append(out, state.version.value_or(VersionId{}).bytes);
  append_check(out);
  return transaction.put(table_meta, base::as_bytes("tree"), out);
}

Result<std::string> get_text(const store::Transaction& transaction, std::string_view key) {
  HFD_TRY(const auto bytes, transaction.get(table_meta, base::as_bytes(key)));
  return std::string(bytes ? base::as_text(*bytes) : std::string_view());
}

Result<void> put_text(store::Transaction& transaction, std::string_view key,
                      std::string_view text) {
  return transaction.put(table_meta, base::as_bytes(key), base::as_bytes(text));
}

}  // namespace hfd::publish::journal
