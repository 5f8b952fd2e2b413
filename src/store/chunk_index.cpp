// SPDX-License-Identifier: Apache-2.0
#include "store/chunk_index.hpp"

#include <algorithm>

namespace hfd::store {
namespace {

constexpr unsigned table_chunks = 0;
constexpr unsigned table_objects = 1;
constexpr unsigned table_by_use = 2;
constexpr unsigned table_pending = 3;
constexpr unsigned table_meta = 4;
constexpr std::size_t owner_bytes = 32;
constexpr std::size_t number_bytes = 8;
using Key = std::array<std::byte, owner_bytes + number_bytes>;

void store_be(std::byte* out, std::uint64_t value) {
  for (std::size_t i = 0; i < number_bytes; ++i) {
    out[i] = static_cast<std::byte>(value >> (8 * (number_bytes - 1 - i)));
  }
}
std::uint64_t load_be(const std::byte* in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < number_bytes; ++i) {
    value = (value << 8U) | std::to_integer<std::uint64_t>(in[i]);
  }
  return value;
}

Key chunk_key(const ChunkKey& key) {
  Key out{};
  std::copy(key.owner.begin(), key.owner.end(), out.begin());
  store_be(out.data() + owner_bytes, key.index);
  return out;
}
Key use_key(std::uint64_t last_use, const ChunkOwner& owner) {
  Key out{};
  store_be(out.data(), last_use);
  std::copy(owner.begin(), owner.end(), out.begin() + number_bytes);
  return out;
}
ChunkKey to_chunk_key(base::ByteView bytes) {
  ChunkKey key;
  std::copy_n(bytes.begin(), owner_bytes, key.owner.begin());
  key.index = load_be(bytes.data() + owner_bytes);
  return key;
}

Error damaged() { return Error{ErrorCode::corrupt, "a damaged row in the cache index"}; }

Result<ChunkRow> decode_chunk(base::ByteView bytes) {
  ChunkRow row;
  if (bytes.size() != 12 + row.hash.size()) {
    return damaged();
  }
  row.bytes = base::load_le<std::uint32_t>(bytes.data());
  row.generation = base::load_le<std::uint64_t>(bytes.data() + 4);
  std::copy_n(bytes.begin() + 12, row.hash.size(), row.hash.begin());
  if (row.bytes == 0 || row.bytes > chunk_bytes) {
    return damaged();
  }
  return row;
}

}  // namespace

std::vector<std::string> chunk_table_names() {
  return {"chunks", "objects", "by_use", "pending", "meta"};
}

Result<std::optional<ChunkRow>> find_chunk(const Transaction& transaction, const ChunkKey& key) {
  HFD_TRY(const auto bytes, transaction.get(table_chunks, chunk_key(key)));
  if (!bytes) {
    return std::optional<ChunkRow>();
  }
  HFD_TRY(const ChunkRow row, decode_chunk(*bytes));
  return std::optional<ChunkRow>(row);
}

Result<void> put_chunk(Transaction& transaction, const ChunkKey& key, const ChunkRow& row) {
  base::Bytes out;
  out.reserve(32);
  base::append_le(out, row.bytes);
  base::append_le(out, row.generation);
  base::append(out, row.hash);
  return transaction.put(table_chunks, chunk_key(key), out);
}

Result<void> retire_chunk(Transaction& transaction, const ChunkKey& key) {
  HFD_TRY_VOID(transaction.remove(table_chunks, chunk_key(key)));
  return put_pending(transaction, key);
}

Result<void> retire_object(Transaction& transaction, const ChunkOwner& owner) {
  constexpr std::size_t batch = 4096;
  while (true) {
    HFD_TRY(const auto chunks, chunks_of(transaction, owner, batch));
    for (const auto& [index, row] : chunks) {
      HFD_TRY_VOID(transaction.remove(table_chunks, chunk_key({owner, index})));
    }
    if (chunks.size() < batch) {
      return put_pending(transaction, {owner, whole_object});
    }
  }
}

Result<std::vector<std::pair<std::uint64_t, ChunkRow>>> chunks_of(const Transaction& transaction,
                                                                  const ChunkOwner& owner,
                                                                  std::size_t count_max) {
  std::vector<std::pair<std::uint64_t, ChunkRow>> chunks;
  const auto row = [&](base::ByteView key, base::ByteView value) {
    if (chunks.size() >= count_max || key.size() != sizeof(Key) ||
        !std::equal(owner.begin(), owner.end(), key.begin())) {
      return false;
    }
    const auto chunk = decode_chunk(value);
    // A damaged row is listed too, with nothing in it: it is on its way out, and must be.
    chunks.emplace_back(load_be(key.data() + owner_bytes), chunk.ok() ? *chunk : ChunkRow{});
    return true;
  };
  HFD_TRY_VOID(transaction.scan(table_chunks, chunk_key({owner, 0}), row));
  return chunks;
}

Result<std::optional<ObjectRow>> find_object(const Transaction& transaction,
                                             const ChunkOwner& owner) {
  HFD_TRY(const auto bytes, transaction.get(table_objects, owner));
  if (!bytes) {
    return std::optional<ObjectRow>();
  }
  if (bytes->size() != 16) {
    return damaged();
  }
  return std::optional<ObjectRow>(ObjectRow{base::load_le<std::uint64_t>(bytes->data()),
                                            base::load_le<std::uint64_t>(bytes->data() + 8)});
}

Result<void> put_object(Transaction& transaction, const ChunkOwner& owner, const ObjectRow& row) {
  HFD_TRY(IndexState state, get_state(transaction));
  HFD_TRY(const auto before, find_object(transaction, owner));
  if (before) {
    HFD_TRY_VOID(transaction.remove(table_by_use, use_key(before->last_use, owner)));
    state.allocated_bytes -=
        std::min(state.allocated_bytes, before->allocated_bytes + object_overhead_bytes);
  }
  state.allocated_bytes += row.allocated_bytes + object_overhead_bytes;
  std::array<std::byte, 16> value{};
  base::store_le(value.data(), row.allocated_bytes);
  base::store_le(value.data() + 8, row.last_use);
  HFD_TRY_VOID(transaction.put(table_objects, owner, value));
  HFD_TRY_VOID(transaction.put(table_by_use, use_key(row.last_use, owner), {}));
  return put_state(transaction, state);
}

Result<void> remove_object(Transaction& transaction, const ChunkOwner& owner) {
  HFD_TRY(const auto before, find_object(transaction, owner));
  if (!before) {
    return {};
  }
  HFD_TRY(IndexState state, get_state(transaction));
  state.allocated_bytes -=
      std::min(state.allocated_bytes, before->allocated_bytes + object_overhead_bytes);
  HFD_TRY_VOID(transaction.remove(table_by_use, use_key(before->last_use, owner)));
  HFD_TRY_VOID(transaction.remove(table_objects, owner));
  return put_state(transaction, state);
}

Result<std::optional<ChunkOwner>> oldest_object(const Transaction& transaction) {
  std::optional<ChunkOwner> oldest;
  HFD_TRY_VOID(transaction.scan(table_by_use, {}, [&](base::ByteView key, base::ByteView) {
    if (key.size() == sizeof(Key)) {
      oldest.emplace();
      std::copy_n(key.begin() + number_bytes, owner_bytes, oldest->begin());
    }
    return false;
  }));
  return oldest;
}

Result<std::vector<ChunkOwner>> all_objects(const Transaction& transaction) {
  std::vector<ChunkOwner> owners;
  HFD_TRY_VOID(transaction.scan(table_objects, {}, [&](base::ByteView key, base::ByteView) {
    if (key.size() == owner_bytes) {
      owners.emplace_back();
      std::copy_n(key.begin(), owner_bytes, owners.back().begin());
    }
    return true;
  }));
  return owners;
}

Result<void> put_pending(Transaction& transaction, const ChunkKey& key) {
  return transaction.put(table_pending, chunk_key(key), {});
}
Result<void> remove_pending(Transaction& transaction, const ChunkKey& key) {
  return transaction.remove(table_pending, chunk_key(key));
}

Result<std::vector<ChunkKey>> pending_places(const Transaction& transaction) {
  std::vector<ChunkKey> places;
  HFD_TRY_VOID(transaction.scan(table_pending, {}, [&](base::ByteView key, base::ByteView) {
    if (key.size() == sizeof(Key)) {
      places.push_back(to_chunk_key(key));
    }
    return true;
  }));
  return places;
}

Result<IndexState> get_state(const Transaction& transaction) {
  HFD_TRY(const auto bytes, transaction.get(table_meta, base::as_bytes("state")));
  if (!bytes) {
    return IndexState{};
  }
  if (bytes->size() != 16) {
    return damaged();
  }
  return IndexState{base::load_le<std::uint64_t>(bytes->data()),
                    base::load_le<std::uint64_t>(bytes->data() + 8)};
}

Result<void> put_state(Transaction& transaction, const IndexState& state) {
  std::array<std::byte, 16> value{};
  base::store_le(value.data(), state.allocated_bytes);
  base::store_le(value.data() + 8, state.next_generation);
  return transaction.put(table_meta, base::as_bytes("state"), value);
}

}  // namespace hfd::store
