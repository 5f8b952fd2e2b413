// SPDX-License-Identifier: Apache-2.0
// The small file beside an LMDB file that says whether it may be trusted after the machine went
// down, and what its meta pages were at the last sync. Used by tables.cpp only.
//
// Why: commits are not synced, and a file system may write LMDB's meta page before the pages that
// it points at, so after power loss the newest meta page can lead to garbage. Asking LMDB to sync
// each commit (MDB_NOMETASYNC) costs a disk flush for each file operation. Instead a reader stays
// parked on the last synced transaction, so LMDB reuses none of its pages, and a copy of the two
// meta pages of that moment is kept here. After power loss the copy is put back and the tables are
// what they were at that sync.
//
// File: two slots of `slot_bytes`, written in turn; the valid one with the higher sequence counts.
// Offset, size, field:
//   0  8  magic "hfdstat1"
//   8  8  sequence
//   16 36 boot id (text)
//   52 4  flags (1 = closed well)
//   56 4  page bytes, 0 = no pages
//   60 4  zero
//   64 …  two meta pages, then 16 bytes xxh3-128 of all before
#pragma once

#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/file.hpp"

namespace hfd::store {

class TablesState {
 public:
  /// Opens or makes <folder>/state and takes a shared lock on it. first() tells whether this
  /// process was alone; the lock stays exclusive until settle() then.
  static Result<std::unique_ptr<TablesState>> open(const std::string& folder);

  bool first() const { return first_; }
  /// True when something was recorded, it is of another boot, and it was not closed well.
  bool power_was_lost() const;
  /// The two meta pages of the last sync; empty when none were recorded.
  base::ByteView saved_pages() const { return pages_; }

  /// Records a synced moment (or, with `pages` empty, only that the tables are in use). Synced.
  Result<void> record(base::ByteView pages, bool closed_well);
  /// From exclusive to shared: others may open now.
  Result<void> settle();
  /// True when nobody else has the tables open; the lock is exclusive then.
  bool become_last();

 private:
  explicit TablesState(base::Fd fd, std::string name)
      : fd_(std::move(fd)), name_(std::move(name)) {}
  Result<void> load();

  base::Fd fd_;
  std::string name_;
  bool first_ = false;
  bool known_ = false;
  bool closed_well_ = false;
  std::string boot_;
  std::uint64_t sequence_ = 0;
  base::Bytes pages_;
};

}  // namespace hfd::store
