// SPDX-License-Identifier: Apache-2.0
// Small transactional key-value tables on LMDB: what the cache index and the staging journal are
// built on. Keys and values are bytes; keys sort bytewise and are at most 500 bytes. One writer at a
// time (a transaction is short and does no I/O of its own); readers never wait. Knows no domain words.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "hfdeltafs/result.hpp"

namespace hfd::store {

class Tables;

/// A transaction. Not committed = undone. One thread at a time. A read transaction must not outlive
/// the call that made it.
class Transaction {
 public:
  ~Transaction();
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) noexcept;

  /// The value, borrowed until the next write in this transaction or its end; nothing when absent.
  Result<std::optional<base::ByteView>> get(unsigned table, base::ByteView key) const;
  Result<void> put(unsigned table, base::ByteView key, base::ByteView value);
  /// An absent key is fine.
  Result<void> remove(unsigned table, base::ByteView key);
  /// Calls `row` for each entry with key >= `from`, in key order, until it returns false. The rows
  /// are borrowed; the table must not be written meanwhile.
  Result<void> scan(unsigned table, base::ByteView from,
                    const std::function<bool(base::ByteView key, base::ByteView value)>& row) const;
  Result<void> commit();

 private:
  friend class Tables;
  struct State;
  explicit Transaction(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct TablesOptions {
  std::string folder;                    ///< made when missing; holds data.mdb and lock.mdb
  std::vector<std::string> names;        ///< tables; Transaction speaks of them by position
  std::size_t map_bytes_max = 1U << 30U; ///< room for growth (address space, not disk)
};

class Tables {
 public:
  /// Commits are not synced (a crash of the process loses nothing; power loss may lose the newest
  /// ones, see sync()). `corrupt` when the file is no LMDB file of ours.
  static Result<std::unique_ptr<Tables>> open(const TablesOptions& options);
  ~Tables();
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  Result<Transaction> begin_read() const;
  Result<Transaction> begin_write();
  /// Makes all committed transactions survive power loss.
  Result<void> sync();

 private:
  struct State;
  explicit Tables(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hfd::store
