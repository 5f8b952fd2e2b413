// SPDX-License-Identifier: Apache-2.0
// LMDB lives here and nowhere else.
//
// Flags: MDB_NOSYNC, because a commit then costs no disk flush (tens of microseconds;
// MDB_NOMETASYNC flushes data pages at each commit, milliseconds on a disk, for every create and
// rename). What that gives up, safety of the newest pages at power loss, tables_state.hpp gives
// back for the synced moment. No MDB_WRITEMAP: dirty pages are private memory until commit writes
// them with pwrite, so a stray write cannot damage the file and a full disk is an error value and
// not a SIGBUS. MDB_NOTLS: reader slots belong to transactions, not to threads; they are pooled
// below.
#include "store/tables.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/check.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "store/tables_check.hpp"
#include "store/tables_state.hpp"

namespace hfd::store {
namespace {

constexpr unsigned readers_max = 510;  // slots of 64 bytes in lock.mdb, shared by all processes
constexpr std::size_t idle_readers_max = 32;  // parked read transactions; more are ended
constexpr std::size_t key_bytes_max = 500;
/// keeps_synced only: a thread syncs what was committed this long ago at most, as ext4 does for its
/// own.
constexpr std::chrono::seconds sync_age_max{5};
/// The parked reader keeps LMDB from reusing pages, so the file grows until the next sync: growth
/// that wakes the thread, and growth at which a commit waits for a sync (a disk slower than its
/// writers).
constexpr std::size_t growth_pages_soft = 2048;   // 8 MiB
constexpr std::size_t growth_pages_hard = 16384;  // 64 MiB

Error lmdb_error(int number, std::string_view doing) {
  if (number > 0) {
    return base::os_error(number, doing, "tables");
  }
  ErrorCode code = ErrorCode::io;
  switch (number) {
    case MDB_MAP_FULL: code = ErrorCode::no_space; break;
    case MDB_READERS_FULL: code = ErrorCode::busy; break;
    case MDB_BAD_VALSIZE: code = ErrorCode::invalid_argument; break;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC:
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
    case MDB_INVALID: code = ErrorCode::corrupt; break;
    default: break;
  }
  return Error{code, std::string(doing) + ": " + mdb_strerror(number), "tables"};
}

MDB_val to_val(base::ByteView bytes) {
  // LMDB takes keys and values as non-const and does not write to them.
  return {bytes.size(),
          const_cast<std::byte*>(bytes.data())};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}
base::ByteView to_view(const MDB_val& val) {
  return {static_cast<const std::byte*>(val.mv_data), val.mv_size};
}

}  // namespace

/// One open LMDB environment of this process, shared by all Tables of its folder.
class Environment {
 public:
  static Result<std::shared_ptr<Environment>> open(const TablesOptions& options);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  Result<MDB_txn*> begin_read();
  void end_read(MDB_txn* transaction);
  Result<MDB_txn*> begin_write();
  Result<void> commit(MDB_txn* transaction);
  Result<void> sync();

  MDB_dbi table(unsigned position) const {
    HFD_CHECK(position < tables_.size());
    return tables_[position];
  }
  const std::vector<std::string>& names() const { return names_; }
  bool went_back() const { return went_back_; }
  bool opened_first() const { return opened_first_; }

 private:
  explicit Environment(const TablesOptions& options)
      : names_(options.names),
        keeps_(options.power_loss == PowerLoss::keeps_synced),
        file_(options.folder + "/data.mdb") {}
  Result<void> recover(const TablesOptions& options);
  Result<void> open_file(const TablesOptions& options);
  Result<void> open_tables();
  Result<base::Bytes> meta_pages() const;
  Result<void> keep_this_moment() HFD_REQUIRES(sync_mutex_);
  void run_syncer();
  bool disk_is_full() const;

  std::vector<std::string> names_;
  bool keeps_;
  std::string file_;
  bool went_back_ = false;
  bool opened_first_ = false;
  bool usable_ = false;
  std::unique_ptr<TablesState> state_;
  MDB_env* env_ = nullptr;
  std::vector<MDB_dbi> tables_;

  base::Mutex readers_mutex_;
  std::vector<MDB_txn*> idle_readers_ HFD_GUARDED_BY(readers_mutex_);
  /// Held across a sync on purpose (the one exception to "no lock across I/O" here): syncs of
  /// several threads join, the second finds its commits already on disk. Only callers of sync()
  /// wait for it.
  base::Mutex sync_mutex_;
  MDB_txn* kept_ HFD_GUARDED_BY(sync_mutex_) = nullptr;
  std::size_t synced_transaction_ HFD_GUARDED_BY(sync_mutex_) = 0;
  std::atomic<std::size_t> pages_at_sync_{0};

  base::Mutex wake_mutex_;  // a leaf
  base::Condition wake_;
  bool stopping_ HFD_GUARDED_BY(wake_mutex_) = false;
  bool grown_ HFD_GUARDED_BY(wake_mutex_) = false;
  std::thread syncer_;
};

Result<std::shared_ptr<Environment>> Environment::open(const TablesOptions& options) {
  HFD_TRY_VOID(base::make_folders(options.folder, 0700));
  std::shared_ptr<Environment> made(new Environment(options));
  HFD_TRY(made->state_, TablesState::open(options.folder));
  made->opened_first_ = made->state_->first();
  if (made->keeps_ && !made->opened_first_) {
    return Error{ErrorCode::busy, "another process has these tables open", options.folder};
  }
  if (made->opened_first_) {
    HFD_TRY_VOID(made->recover(options));
  }
  HFD_TRY_VOID(made->open_file(options));
  HFD_TRY_VOID(made->open_tables());
  if (made->keeps_) {
    HFD_TRY_VOID(made->sync());
    HFD_TRY_VOID(base::sync_folder(options.folder));  // the files' own names
    made->syncer_ = std::thread([environment = made.get()] {
      base::name_this_thread("hfd-tables");
      environment->run_syncer();
    });
  } else if (made->opened_first_) {
    HFD_TRY_VOID(made->state_->record({}, false));
    HFD_TRY_VOID(made->state_->settle());
  }
  made->usable_ = true;
  return made;
}

/// Before LMDB looks at the file: after power loss its newest pages may be missing.
Result<void> Environment::recover(const TablesOptions& options) {
  struct stat status {};
  if (::stat(file_.c_str(), &status) != 0) {
    return {};  // a new folder
  }
  if (state_->power_was_lost() || options.assume_power_loss) {
    const base::ByteView pages = state_->saved_pages();
    if (!keeps_ || pages.empty()) {
      return Error{ErrorCode::corrupt, "the machine went down while the tables were in use",
                   options.folder};
    }
    HFD_TRY(const base::Fd fd, base::open_file(file_, O_RDWR));
    HFD_TRY_VOID(base::write_exactly(fd, 0, pages, file_));
    if (::fdatasync(fd.get()) != 0) {
      return base::os_error(errno, "cannot sync", file_);
    }
    went_back_ = true;
    base::log(base::LogLevel::warning,
              "the machine went down: going on from the last synced state of " + file_);
  }
  return check_tables_file(file_);
}

Result<void> Environment::open_file(const TablesOptions& options) {
  if (const int bad = mdb_env_create(&env_); bad != 0) {
    return lmdb_error(bad, "cannot make an environment");
  }
  int bad = mdb_env_set_maxdbs(env_, static_cast<MDB_dbi>(options.names.size()));
  bad = bad != 0 ? bad : mdb_env_set_maxreaders(env_, readers_max);
  bad = bad != 0 ? bad : mdb_env_set_mapsize(env_, options.map_bytes_max);
  constexpr unsigned flags = MDB_NOSYNC | MDB_NOTLS | MDB_NORDAHEAD;
  bad = bad != 0 ? bad : mdb_env_open(env_, options.folder.c_str(), flags, 0600);
  if (bad == 0) {
    int dead = 0;
    bad = mdb_reader_check(env_, &dead);  // slots of killed processes would keep old pages for ever
  }
  if (bad != 0) {
    return lmdb_error(bad, "cannot open").on(options.folder);
  }
  return {};
}

Result<void> Environment::open_tables() {
  MDB_txn* transaction = nullptr;
  int bad = mdb_txn_begin(env_, nullptr, 0, &transaction);
  if (bad != 0) {
    return lmdb_error(bad, "cannot open tables");
  }
  for (const std::string& name : names_) {
    MDB_dbi table = 0;
    bad = bad != 0 ? bad : mdb_dbi_open(transaction, name.c_str(), MDB_CREATE, &table);
    tables_.push_back(table);
  }
  if (bad != 0) {
    mdb_txn_abort(transaction);
    return lmdb_error(bad, "cannot open tables");
  }
  if (bad = mdb_txn_commit(transaction); bad != 0) {
    return lmdb_error(bad, "cannot open tables");
  }
  return {};
}

Environment::~Environment() {
  if (syncer_.joinable()) {
    {
      base::Lock lock(wake_mutex_);
      stopping_ = true;
      wake_.notify_one();
    }
    syncer_.join();
  }
  if (env_ == nullptr) {
    return;
  }
  for (MDB_txn* reader : idle_readers_) {
    mdb_txn_abort(reader);
  }
  if (usable_ && (keeps_ || state_->become_last())) {
    base::Lock lock(sync_mutex_);
    const auto kept = keep_this_moment();
    const auto recorded = kept.ok() ? state_->record(state_->saved_pages(), true) : kept;
    if (!recorded.ok()) {
      base::log(base::LogLevel::warning, "cannot close tables well: " + recorded.error().message);
    }
  }
  if (kept_ != nullptr) {
    mdb_txn_abort(kept_);
  }
  mdb_env_close(env_);
}

Result<MDB_txn*> Environment::begin_read() {
  MDB_txn* reader = nullptr;
  {
    base::Lock lock(readers_mutex_);
    if (!idle_readers_.empty()) {
      reader = idle_readers_.back();
      idle_readers_.pop_back();
    }
  }
  if (reader != nullptr) {
    if (mdb_txn_renew(reader) == 0) {
      return reader;
    }
    mdb_txn_abort(reader);
  }
  if (const int bad = mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader); bad != 0) {
    return lmdb_error(bad, "cannot begin to read");
  }
  return reader;
}

void Environment::end_read(MDB_txn* transaction) {
  mdb_txn_reset(transaction);
  {
    base::Lock lock(readers_mutex_);
    if (idle_readers_.size() < idle_readers_max) {
      idle_readers_.push_back(transaction);
      return;
    }
  }
  mdb_txn_abort(transaction);
}

Result<MDB_txn*> Environment::begin_write() {
  MDB_txn* transaction = nullptr;
  if (const int bad = mdb_txn_begin(env_, nullptr, 0, &transaction); bad != 0) {
    return lmdb_error(bad, "cannot begin to write");
  }
  return transaction;
}

Result<void> Environment::commit(MDB_txn* transaction) {
  if (const int bad = mdb_txn_commit(transaction); bad != 0) {
    // LMDB calls a write that a full disk cut short an EIO.
    return lmdb_error(bad == EIO && disk_is_full() ? ENOSPC : bad, "cannot commit");
  }
  MDB_envinfo info{};
  if (!keeps_ || mdb_env_info(env_, &info) != 0) {
    return {};
  }
  const std::size_t grown = info.me_last_pgno - std::min(info.me_last_pgno, pages_at_sync_.load());
  if (grown >= growth_pages_hard) {
    // The commit itself is done: a disk that cannot flush shows at the next fsync, not here.
    if (const auto synced = sync(); !synced.ok()) {
      base::log(base::LogLevel::warning, "cannot sync tables: " + synced.error().message);
    }
  } else if (grown >= growth_pages_soft) {
    base::Lock lock(wake_mutex_);
    grown_ = true;
    wake_.notify_one();
  }
  return {};
}

bool Environment::disk_is_full() const {
  struct statvfs status {};
  constexpr std::uint64_t nearly_nothing = 1U << 20U;
  return ::statvfs(file_.c_str(), &status) == 0 &&
         status.f_bavail * status.f_frsize < nearly_nothing;
}

void Environment::run_syncer() {
  while (true) {
    {
      base::Lock lock(wake_mutex_);
      const auto until = base::deadline_in(sync_age_max);
      bool in_time = true;
      while (!stopping_ && !grown_ && in_time) {
        in_time = wake_.wait_until(wake_mutex_, until);
      }
      if (stopping_) {
        return;
      }
      grown_ = false;
    }
    if (const auto synced = sync(); !synced.ok()) {
      base::log(base::LogLevel::warning, "cannot sync tables: " + synced.error().message);
    }
  }
}

Result<base::Bytes> Environment::meta_pages() const {
  MDB_stat stat{};
  if (const int bad = mdb_env_stat(env_, &stat); bad != 0) {
    return lmdb_error(bad, "cannot look at the environment");
  }
  HFD_TRY(const base::Fd fd, base::open_file(file_, O_RDONLY));
  base::Bytes pages(std::size_t{2} * stat.ms_psize);
  HFD_TRY_VOID(base::read_exactly(fd, 0, pages, file_));
  return pages;
}

/// Flushes the newest committed state and makes it the one that power loss goes back to.
Result<void> Environment::keep_this_moment() {
  base::Bytes pages;
  MDB_txn* reader = nullptr;
  if (keeps_) {
    // The write transaction only holds off commits while the meta pages are copied and a reader is
    // parked on them; it writes nothing. The flush happens after it, with writers going on.
    HFD_TRY(MDB_txn* const writer, begin_write());
    auto read = meta_pages();
    const int bad = read.ok() ? mdb_txn_begin(env_, nullptr, MDB_RDONLY, &reader) : 0;
    mdb_txn_abort(writer);
    HFD_TRY(pages, std::move(read));
    if (bad != 0) {
      return lmdb_error(bad, "cannot begin to read");
    }
  }
  Result<void> kept;
  if (const int bad = mdb_env_sync(env_, 1); bad != 0) {
    kept = lmdb_error(bad, "cannot sync");
  }
  if (kept.ok() && keeps_) {
    kept = state_->record(pages, false);
  }
  if (!kept.ok()) {
    if (reader != nullptr) {
      mdb_txn_abort(reader);
    }
    return kept;
  }
  if (reader != nullptr) {
    MDB_envinfo info{};
    pages_at_sync_ = mdb_env_info(env_, &info) == 0 ? info.me_last_pgno : 0;
    synced_transaction_ = mdb_txn_id(reader);
    std::swap(reader, kept_);
    if (reader != nullptr) {
      mdb_txn_abort(reader);
    }
  }
  return {};
}

Result<void> Environment::sync() {
  MDB_envinfo info{};
  if (const int bad = mdb_env_info(env_, &info); bad != 0) {
    return lmdb_error(bad, "cannot look at the environment");
  }
  base::Lock lock(sync_mutex_);
  if (kept_ != nullptr && synced_transaction_ >= info.me_last_txnid) {
    return {};  // somebody's sync since our commit took it along
  }
  return keep_this_moment();
}

// --- the environments of this process ----------------------------------------------------------

namespace {

/// LMDB forbids two environments on one file in one process (its fcntl locks belong to the
/// process), so this is a fact about the process and must be a global: folder -> environment.
struct Registry {
  base::Mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Environment>> open HFD_GUARDED_BY(mutex);
};
Registry& registry() {
  static Registry only;
  return only;
}

}  // namespace

Result<std::unique_ptr<Tables>> Tables::open(const TablesOptions& options) {
  HFD_TRY_VOID(base::make_folders(options.folder, 0700));
  struct stat status {};
  if (::stat(options.folder.c_str(), &status) != 0) {
    return base::os_error(errno, "cannot stat", options.folder);
  }
  base::Lock lock(registry().mutex);  // also keeps an environment from being closed while we look
  auto& known = registry().open[{status.st_dev, status.st_ino}];
  if (auto environment = known.lock()) {
    if (environment->names() != options.names) {
      return Error{ErrorCode::invalid_argument, "these tables are open under other names",
                   options.folder};
    }
    return std::unique_ptr<Tables>(new Tables(std::move(environment)));
  }
  HFD_TRY(auto environment, Environment::open(options));
  known = environment;
  return std::unique_ptr<Tables>(new Tables(std::move(environment)));
}

Tables::Tables(std::shared_ptr<Environment> environment) : environment_(std::move(environment)) {}

Tables::~Tables() {
  base::Lock lock(registry().mutex);
  environment_.reset();
  std::erase_if(registry().open, [](const auto& entry) { return entry.second.expired(); });
}

// --- transactions --------------------------------------------------------------------------------

struct Transaction::State {
  Environment& environment;  // borrowed: a transaction ends before its Tables
  MDB_txn* transaction;
  bool writes;

  State(Environment& owner, MDB_txn* txn, bool write)
      : environment(owner), transaction(txn), writes(write) {}
  ~State() {
    if (transaction == nullptr) {
      return;
    }
    if (writes) {
      mdb_txn_abort(transaction);
    } else {
      environment.end_read(transaction);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Transaction::Transaction(std::unique_ptr<State> state) : state_(std::move(state)) {}
Transaction::~Transaction() = default;
Transaction::Transaction(Transaction&&) noexcept = default;
Transaction& Transaction::operator=(Transaction&&) noexcept = default;

Result<Transaction> Tables::begin_read() const {
  HFD_TRY(MDB_txn* const transaction, environment_->begin_read());
  return Transaction(std::make_unique<Transaction::State>(*environment_, transaction, false));
}

Result<Transaction> Tables::begin_write() {
  HFD_TRY(MDB_txn* const transaction, environment_->begin_write());
  return Transaction(std::make_unique<Transaction::State>(*environment_, transaction, true));
}

Result<void> Tables::sync() { return environment_->sync(); }
bool Tables::went_back() const { return environment_->went_back(); }
bool Tables::opened_first() const { return environment_->opened_first(); }

Result<std::optional<base::ByteView>> Transaction::get(unsigned table, base::ByteView key) const {
  HFD_CHECK(state_->transaction != nullptr);
  MDB_val wanted = to_val(key);
  MDB_val found{};
  const int bad = mdb_get(state_->transaction, state_->environment.table(table), &wanted, &found);
  if (bad == MDB_NOTFOUND) {
    return std::optional<base::ByteView>();
  }
  if (bad != 0) {
    return lmdb_error(bad, "cannot read a row");
  }
  return std::optional<base::ByteView>(to_view(found));
}

Result<void> Transaction::put(unsigned table, base::ByteView key, base::ByteView value) {
  HFD_CHECK(state_->transaction != nullptr && state_->writes);
  if (key.empty() || key.size() > key_bytes_max) {
    return Error{ErrorCode::invalid_argument, "a key has 1 to 500 bytes"};
  }
  MDB_val wanted = to_val(key);
  MDB_val stored = to_val(value);
  if (const int bad =
          mdb_put(state_->transaction, state_->environment.table(table), &wanted, &stored, 0);
      bad != 0) {
    return lmdb_error(bad, "cannot write a row");
  }
  return {};
}

Result<void> Transaction::remove(unsigned table, base::ByteView key) {
  HFD_CHECK(state_->transaction != nullptr && state_->writes);
  MDB_val wanted = to_val(key);
  const int bad = mdb_del(state_->transaction, state_->environment.table(table), &wanted, nullptr);
  if (bad != 0 && bad != MDB_NOTFOUND) {
    return lmdb_error(bad, "cannot remove a row");
  }
  return {};
}

Result<void> Transaction::scan(
    unsigned table, base::ByteView from,
    const std::function<bool(base::ByteView, base::ByteView)>& row) const {
  HFD_CHECK(state_->transaction != nullptr);
  MDB_cursor* opened = nullptr;
  if (const int bad =
          mdb_cursor_open(state_->transaction, state_->environment.table(table), &opened);
      bad != 0) {
    return lmdb_error(bad, "cannot scan");
  }
  const std::unique_ptr<MDB_cursor, decltype(&mdb_cursor_close)> cursor(opened, &mdb_cursor_close);
  MDB_val key = to_val(from);
  MDB_val value{};
  int bad = mdb_cursor_get(opened, &key, &value, from.empty() ? MDB_FIRST : MDB_SET_RANGE);
  while (bad == 0 && row(to_view(key), to_view(value))) {
    bad = mdb_cursor_get(opened, &key, &value, MDB_NEXT);
  }
  if (bad != 0 && bad != MDB_NOTFOUND) {
    return lmdb_error(bad, "cannot scan");
  }
  return {};
}

Result<void> Transaction::commit() {
  HFD_CHECK(state_->transaction != nullptr && state_->writes);
  MDB_txn* const transaction = std::exchange(state_->transaction, nullptr);
  return state_->environment.commit(transaction);
}

}  // namespace hfd::store
