// SPDX-License-Identifier: Apache-2.0
#include "publish/work_tree.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.hpp"
#include "publish/work_tree_local.hpp"

namespace hfd::publish {
namespace {

/// Blocks that are given back when the disk is full, so that the journal can still note a removal.
constexpr std::uint64_t reserve_bytes = 1U << 20U;
/// Data files wait for removal until this many, or this much, are worth a disk flush of the
/// journal.
constexpr std::size_t retired_max = 256;
constexpr std::uint64_t retired_bytes_max = 1U << 20U;
constexpr std::size_t journal_map_bytes = std::size_t{4}
                                          << 30U;  // address space: some ten million files
constexpr std::uint32_t mode_mask = 07777;

base::UnixNanoseconds to_nanoseconds(const timespec& time) {
  return static_cast<base::UnixNanoseconds>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

timespec to_timespec(base::UnixNanoseconds time) {
  constexpr base::UnixNanoseconds second = 1'000'000'000;
  base::UnixNanoseconds rest = time % second;
  base::UnixNanoseconds seconds = time / second;
  if (rest < 0) {
    rest += second;
    --seconds;
  }
  timespec out{};
  out.tv_sec = static_cast<time_t>(seconds);
  out.tv_nsec = static_cast<long>(rest);
  return out;
}

}  // namespace

Error posix_error(int number, std::string_view object) {
  Error error = base::os_error(number, "", object);
  error.message = std::generic_category().message(number);
  if (number == EINVAL || number == ENAMETOOLONG || number == ENOTDIR || number == EISDIR) {
    error.code = ErrorCode::invalid_argument;
  }
  return error;
}

Result<std::unique_ptr<WorkTree>> WorkTree::open(const WorkTreeOptions& options) {
  HFD_TRY(auto tree, LocalWorkTree::open(options));
  return std::unique_ptr<WorkTree>(std::move(tree));
}

Result<std::unique_ptr<LocalWorkTree>> LocalWorkTree::open(const WorkTreeOptions& options) {
  HFD_TRY_VOID(base::make_folders(options.folder, 0700));
  std::unique_ptr<LocalWorkTree> tree(new LocalWorkTree(options));
  HFD_TRY_VOID(tree->lock_folder());
  HFD_TRY_VOID(base::make_folders(options.folder + "/data", 0700));
  std::error_code ignored;
  std::filesystem::remove_all(tree->temporary_folder(), ignored);
  HFD_TRY_VOID(base::make_folders(tree->temporary_folder(), 0700));
  tree->make_reserve();
  HFD_TRY_VOID(tree->open_journal());
  HFD_TRY_VOID(tree->start_state());
  HFD_TRY_VOID(tree->recover());
  HFD_TRY_VOID(base::sync_folder(options.folder));
  return tree;
}

LocalWorkTree::~LocalWorkTree() {
  if (tables_) {
    remove_retired();
  }
}

Result<void> LocalWorkTree::lock_folder() {
  const std::string path = options_.folder + "/lock";
  HFD_TRY(lock_, base::open_file(path, O_RDWR | O_CREAT));
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return base::os_error(errno, "cannot lock", path);
    }
    return Error{ErrorCode::busy, "another hfdeltafs uses this staging folder", options_.folder};
  }
  return {};
}

Result<void> LocalWorkTree::open_journal() {
  store::TablesOptions tables;
  tables.folder = options_.folder + "/journal";
  tables.names = journal::table_names_of_journal();
  tables.map_bytes_max = journal_map_bytes;
  tables.power_loss = store::PowerLoss::keeps_synced;
  tables.assume_power_loss = options_.assume_power_loss;
  auto opened = store::Tables::open(tables);
  if (!opened.ok()) {
    return std::move(opened)
        .error()
        .in("staging journal")
        .on(tables.folder)
        .with_hint("the staged bytes are still in " + options_.folder + "/data");
  }
  tables_ = std::move(*opened);
  return {};
}

/// Reads the state, or makes a new tree; refuses data that belongs elsewhere.
Result<void> LocalWorkTree::start_state() {
  std::optional<journal::TreeState> state;
  std::string bucket;
  std::string ref;
  {
    HFD_TRY(const auto reading, tables_->begin_read());
    HFD_TRY(state, journal::find_state(reading));
    HFD_TRY(bucket, journal::get_text(reading, "bucket"));
    HFD_TRY(ref, journal::get_text(reading, "ref"));
  }
  if (state && (bucket != options_.bucket_uri || ref != options_.ref)) {
    HFD_TRY(const bool holds, holds_data());
    if (holds) {
      return Error{
          ErrorCode::conflict,
          "this staging folder holds unpublished files of " + bucket + " (ref " + ref + ")",
          options_.folder, "mount that again to publish them, or use another staging folder"};
    }
    HFD_TRY_VOID(start_anew());
    state.reset();
  }
  if (!state) {
    HFD_TRY(auto writing, tables_->begin_write());
    state.emplace();
    journal::Row root;
    root.node.id = root_node;
    root.node.kind = NodeKind::folder;
    root.node.mode = 0755;
    root.node.uid = options_.uid;
    root.node.gid = options_.gid;
    root.node.mtime = root.node.atime = root.node.ctime = base::now_utc();
    HFD_TRY_VOID(journal::put_row(writing, root));
    HFD_TRY_VOID(journal::put_text(writing, "bucket", options_.bucket_uri));
    HFD_TRY_VOID(journal::put_text(writing, "ref", options_.ref));
    HFD_TRY_VOID(journal::put_state(writing, *state));
    HFD_TRY_VOID(writing.commit());
  }
  generation_ = state->generation;
  base::Lock lock(mutex_);
  version_ = state->version;
  return {};
}

/// True when a file waits to be published: staged, with a name that is published.
Result<bool> LocalWorkTree::holds_data() const {
  HFD_TRY(const auto staged, staged_files());
  for (const StagedFile& file : staged) {
    if (!file.junk) {
      return true;
    }
  }
  return false;
}

Result<void> LocalWorkTree::start_anew() {
  tables_.reset();
  std::error_code bad;
  std::filesystem::remove_all(options_.folder + "/journal", bad);
  if (bad) {
    return base::os_error(bad.value(), "cannot remove", options_.folder + "/journal");
  }
  return open_journal();
}

// --- changes
// ---------------------------------------------------------------------------------------

Result<void> LocalWorkTree::change_once(ChangeKind kind, const Change& body) {
  HFD_TRY(auto writing, tables_->begin_write());
  HFD_TRY(auto state, journal::find_state(writing));
  if (!state) {
    return Error{ErrorCode::corrupt, "the staging journal lost its state", options_.folder};
  }
  HFD_TRY_VOID(body(writing, *state));
  if (kind.counts) {
    ++state->generation;
  }
  HFD_TRY_VOID(journal::put_state(writing, *state));
  HFD_TRY_VOID(writing.commit());
  // Commits are ordered, the lines below are not: keep the highest.
  std::uint64_t known = generation_.load();
  while (known < state->generation &&
         !generation_.compare_exchange_weak(known, state->generation)) {
  }
  if (kind.counts) {
    base::Lock lock(mutex_);
    last_change_ = base::SteadyClock::now();
  }
  return {};
}

Result<void> LocalWorkTree::change(ChangeKind kind, const Change& body) {
  auto done = change_once(kind, body);
  if (!done.ok() && done.error().code == ErrorCode::no_space && tables_->sync().ok()) {
    done = change_once(kind, body);  // a sync lets the journal use its old pages again
  }
  if (!done.ok() && done.error().code == ErrorCode::no_space && kind.frees && release_reserve()) {
    done = change_once(kind, body);
  }
  if (!done.ok() && done.error().code == ErrorCode::no_space && done.error().os_errno == 0) {
    done.error().os_errno = ENOSPC;
  }
  return done;
}

/// Best effort: without it a full disk refuses removals too.
void LocalWorkTree::make_reserve() {
  const auto fd = base::open_file(options_.folder + "/reserve", O_RDWR | O_CREAT);
  if (fd.ok() && ::posix_fallocate(fd->get(), 0, static_cast<off_t>(reserve_bytes)) != 0) {
    static_cast<void>(::ftruncate(fd->get(), 0) == 0);
  }
}

/// False when there was none left.
bool LocalWorkTree::release_reserve() {
  const auto fd = base::open_file(options_.folder + "/reserve", O_RDWR | O_CREAT);
  if (!fd.ok()) {
    return false;
  }
  const auto bytes = base::file_bytes(*fd, "reserve");
  return bytes.ok() && *bytes > 0 && ::ftruncate(fd->get(), 0) == 0;
}

void LocalWorkTree::retire(const std::vector<Retired>& data) {
  if (data.empty()) {
    return;
  }
  bool enough = false;
  {
    base::Lock lock(mutex_);
    for (const Retired& one : data) {
      retired_.push_back(one);
      retired_bytes_ += one.bytes;
    }
    enough = retired_.size() >= retired_max || retired_bytes_ >= retired_bytes_max;
  }
  if (enough) {
    remove_retired();
  }
}

void LocalWorkTree::remove_retired() {
  std::vector<Retired> data;
  {
    base::Lock lock(mutex_);
    data.swap(retired_);
    retired_bytes_ = 0;
  }
  if (data.empty()) {
    return;
  }
  if (const auto synced = tables_->sync(); !synced.ok()) {
    base::log(base::LogLevel::warning,
              "cannot sync the staging journal: " + synced.error().message);
    base::Lock lock(mutex_);  // the next one tries again; open() removes them at the latest
    retired_.insert(retired_.end(), data.begin(), data.end());
    return;
  }
  for (const Retired& one : data) {
    if (const auto removed = base::remove_file(data_path(one.id)); !removed.ok()) {
      base::log(base::LogLevel::warning, removed.error().message + ": " + removed.error().object);
    }
  }
  make_reserve();
}

// --- state, attributes
// -------------------------------------------------------------------------------

std::optional<VersionId> LocalWorkTree::version() const {
  base::Lock lock(mutex_);
  return version_;
}

base::SteadyClock::time_point LocalWorkTree::last_change() const {
  base::Lock lock(mutex_);
  return last_change_;
}

Result<Node> LocalWorkTree::get(NodeId id) const {
  HFD_TRY(const auto reading, tables_->begin_read());
  HFD_TRY(auto row, journal::get_row(reading, id));
  return std::move(row.node);
}

Result<Node> LocalWorkTree::set_attributes(NodeId id, const AttributeChange& change_wanted) {
  Node out;
  const bool counts = change_wanted.mode || change_wanted.mtime;
  const auto done =
      change({counts, true}, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
        HFD_TRY(journal::Row row, journal::get_row(writing, id));
        Node& node = row.node;
        node.mode = change_wanted.mode.value_or(node.mode) & mode_mask;
        node.uid = change_wanted.uid.value_or(node.uid);
        node.gid = change_wanted.gid.value_or(node.gid);
        node.mtime = change_wanted.mtime.value_or(node.mtime);
        node.atime = change_wanted.atime.value_or(node.atime);
        node.ctime = base::now_utc();
        HFD_TRY_VOID(journal::put_row(writing, row));
        out = node;
        return {};
      });
  HFD_TRY_VOID(done);
  return out;
}

// --- bytes
// -------------------------------------------------------------------------------------------

Result<base::Fd> LocalWorkTree::open_data(NodeId id) const {
  HFD_TRY(const Node node, get(id));
  if (node.kind != NodeKind::file || node.place != Place::staged) {
    return Error{ErrorCode::invalid_argument, "the file has no bytes in staging", node.name};
  }
  auto fd = base::open_file(data_path(id), O_RDWR);
  if (!fd.ok() && fd.error().code == ErrorCode::not_found) {
    return Error{ErrorCode::corrupt, "the staged bytes are missing", data_path(id), {}, EIO};
  }
  return fd;
}

Result<Node> LocalWorkTree::stage(NodeId id, std::uint64_t bytes,
                                  const std::function<Result<void>(const base::Fd&)>& fill) {
  HFD_TRY(const Node before, get(id));
  if (before.kind != NodeKind::file) {
    return posix_error(before.kind == NodeKind::folder ? EISDIR : EINVAL, before.name);
  }
  if (before.place == Place::staged) {
    return before;
  }
  // Filled under a name of its own: two openers may stage at once, and a crash leaves a file that
  // open() recognises as nobody's.
  const std::string filling =
      data_path(id) + ".filling-" + std::to_string(stage_counter_.fetch_add(1));
  const auto filled = [&]() -> Result<void> {
    HFD_TRY(const base::Fd fd, base::open_file(filling, O_RDWR | O_CREAT | O_TRUNC));
    if (bytes == 0) {
      return {};
    }
    HFD_TRY_VOID(fill(fd));
    if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
      return base::os_error(errno, "cannot set the size", filling);
    }
    const timespec times[2] = {to_timespec(before.atime), to_timespec(before.mtime)};
    if (::futimens(fd.get(), static_cast<const timespec*>(times)) !=
        0) {  // unwritten means unchanged mtime
      return base::os_error(errno, "cannot set times", filling);
    }
    return {};
  }();
  Node out;
  auto done =
      !filled.ok()
          ? filled
          : change(adds, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
              HFD_TRY(journal::Row row, journal::get_row(writing, id));
              if (row.node.place != Place::staged) {
                if (::rename(filling.c_str(), data_path(id).c_str()) != 0) {
                  return base::os_error(errno, "cannot rename", filling);
                }
                row.node.place = Place::staged;
                row.node.bytes = bytes;
                row.node.change += 1;
                row.node.mtime = bytes == 0 ? base::now_utc() : row.node.mtime;
                row.synced = false;
                row.lost = false;
                HFD_TRY_VOID(journal::put_row(writing, row));
              }
              out = row.node;
              return {};
            });
  if (const auto removed = base::remove_file(filling); !removed.ok() && done.ok()) {
    done = removed;
  }
  HFD_TRY_VOID(done);
  return out;
}

Result<void> LocalWorkTree::begin_writing(NodeId id) {
  return change(
      {true, true}, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
        HFD_TRY(journal::Row row, journal::get_row(writing, id));
        if (row.node.kind != NodeKind::file || row.node.place != Place::staged) {
          return Error{ErrorCode::invalid_argument, "the file has no bytes in staging",
                       row.node.name};
        }
        row.node.writing = true;
        row.node.left_by_crash = row.lost;  // rewritten: the writer's close makes it whole
        row.node.change += 1;
        row.synced = false;
        return journal::put_row(writing, row);
      });
}

Result<Node> LocalWorkTree::settled(NodeId id, std::optional<base::UnixNanoseconds> mtime,
                                    bool closed) {
  HFD_TRY(const base::Fd fd, open_data(id));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    return base::os_error(errno, "cannot stat", data_path(id));
  }
  Node out;
  bool was_synced = false;
  const auto done =
      change({true, true}, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
        HFD_TRY(journal::Row row, journal::get_row(writing, id));
        row.node.bytes = static_cast<std::uint64_t>(status.st_size);
        row.node.mtime = mtime.value_or(to_nanoseconds(status.st_mtim));
        row.node.ctime = base::now_utc();
        row.node.writing = row.node.writing && !closed;
        was_synced = row.synced;
        row.synced = row.synced && !closed;
        HFD_TRY_VOID(journal::put_row(writing, row));
        out = row.node;
        return {};
      });
  HFD_TRY_VOID(done);
  if (closed && was_synced) {
    HFD_TRY_VOID(sync(id));
  }
  return out;
}

Result<void> LocalWorkTree::sync(NodeId id) {
  HFD_TRY(const Node before, get(id));
  if (before.kind == NodeKind::file && before.place == Place::staged) {
    HFD_TRY(const base::Fd fd, open_data(id));
    if (::fdatasync(fd.get()) != 0) {
      return base::os_error(errno, "cannot sync", data_path(id));
    }
    HFD_TRY_VOID(base::sync_folder(options_.folder + "/data"));
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) {
      return base::os_error(errno, "cannot stat", data_path(id));
    }
    const auto done =
        change(bookkeeping, [&](store::Transaction& writing, journal::TreeState&) -> Result<void> {
          HFD_TRY(auto row, journal::find_row(writing, id));
          if (!row || row->node.place != Place::staged || row->node.change != before.change) {
            return {};  // gone, published, or written again: nothing to say about those bytes
          }
          row->synced = true;
          row->node.bytes = static_cast<std::uint64_t>(status.st_size);
          return journal::put_row(writing, *row);
        });
    HFD_TRY_VOID(done);
  }
  return tables_->sync();
}

}  // namespace hfd::publish
