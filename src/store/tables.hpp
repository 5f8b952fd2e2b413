// SPDX-License-Identifier: Apache-2.0
// Small transactional key-value tables on LMDB: what the cache index and the staging journal are
// built on. Keys and values are bytes; keys sort bytewise and are at most 500 bytes. One writer at
// a time (a transaction is short and does no I/O of its own); readers never wait. Knows no domain
// words.
//
// A process must not fork() while it has tables open (LMDB's locks belong to the process): the
// daemon forks first. Opening one folder twice in a process is fine, the handles share one
// environment.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hfdeltafs/result.hpp"

#include "base/bytes.hpp"

namespace hfd::store {

class Tables;
class Environment;

/// A transaction. Not committed = undone. One thread at a time; a write transaction begins and ends
/// on one thread. A read transaction must not outlive the call that made it.
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

/// What must be there again after the machine lost power (a killed process loses nothing either
/// way).
enum class PowerLoss {
  /// Nothing: open() then says `corrupt`, so that the owner starts anew. For what can be fetched
  /// again.
  forgets_all,
  /// The state of the last sync(), which also happens by itself every few seconds. Only one process
  /// at a time may have such tables open.
  keeps_synced,
};

struct TablesOptions {
  std::string folder;                     ///< made when missing; holds data.mdb, lock.mdb and state
  std::vector<std::string> names;         ///< tables; Transaction speaks of them by position
  std::size_t map_bytes_max = 1U << 30U;  ///< room for growth (address space, not disk)
  PowerLoss power_loss = PowerLoss::forgets_all;
  bool assume_power_loss = false;  ///< for tests: behave as if the machine had gone down since
};

class Tables {
 public:
  /// Commits are not synced (a crash of the process loses nothing; power loss may lose the newest
  /// ones, see sync()). `corrupt` when the file is no LMDB file of ours, or damaged.
  static Result<std::unique_ptr<Tables>> open(const TablesOptions& options);
  ~Tables();
  Tables(const Tables&) = delete;
  Tables& operator=(const Tables&) = delete;

  Result<Transaction> begin_read() const;
  Result<Transaction> begin_write();
  /// Makes all committed transactions survive power loss (keeps_synced; else it only flushes). Not
  /// within a transaction of the calling thread. Writers are not held up meanwhile.
  Result<void> sync();
  /// True when open() found that the machine went down and went back to the last synced state.
  bool went_back() const;
  /// True when no other process had these tables open at open().
  bool opened_first() const;

 private:
  explicit Tables(std::shared_ptr<Environment> environment);
  std::shared_ptr<Environment> environment_;
};

}  // namespace hfd::store
