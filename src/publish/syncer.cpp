// SPDX-License-Identifier: Apache-2.0
#include "publish/syncer.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace hfd::publish {
namespace {

/// Earlier versions kept in memory for files that were looked up before a switch and opened after it.
constexpr std::size_t versions_kept_max = 8;
constexpr std::size_t errors_kept_max = 32;
/// A writer that keeps writing makes a publish start anew; a commit gives up after so many tries.
constexpr int commit_tries_max = 8;
constexpr std::chrono::milliseconds back_off_min{1'000};
constexpr std::chrono::milliseconds back_off_max{60'000};
/// The thread looks around at least this often.
constexpr std::chrono::milliseconds idle_wait_max{1'000};

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

lineage::FileEntry entry_of(const SnapshotEntry& snapshot) {
  const Node& node = snapshot.node;
  lineage::FileEntry entry;
  entry.path = snapshot.path;
  entry.mtime = node.mtime;
  if (node.kind == NodeKind::symlink) {
    entry.kind = lineage::FileEntry::Kind::symlink;
    entry.symlink_target = node.symlink_target;
  } else if (node.kind == NodeKind::folder) {
    entry.kind = lineage::FileEntry::Kind::folder;
  } else {
    entry.bytes = node.bytes;
    entry.sha256 = node.content;
    entry.executable = (node.mode & 0111U) != 0;
  }
  return entry;
}

bool same_entry(const lineage::FileEntry& a, const lineage::FileEntry& b) {
  return a.path == b.path && a.kind == b.kind && a.bytes == b.bytes && a.sha256 == b.sha256 &&
         a.executable == b.executable && a.symlink_target == b.symlink_target;
}

std::string name_some(const std::vector<std::string>& names) {
  constexpr std::size_t named_max = 5;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < named_max; ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  return names.size() > named_max ? text + " and " + std::to_string(names.size() - named_max) + " more" : text;
}

}  // namespace

Syncer::Syncer(WorkTree& tree, lineage::Bucket* bucket, ContentOpener open_content, base::ThreadPool& pool,
               SyncOptions options, lineage::VersionPtr start, lineage::VersionPtr base)
    : tree_(tree),
      bucket_(bucket),
      open_content_(std::move(open_content)),
      pool_(pool),
      options_(std::move(options)),
      base_(std::move(base)) {
  if (start) {
    const base::Lock lock(mutex_);
    versions_.push_front(std::move(start));
  }
}

Syncer::~Syncer() { stop(); }

void Syncer::start(SyncHooks hooks) {
  hooks_ = std::move(hooks);
  next_poll_ = base::SteadyClock::now() + options_.poll;
  if (bucket_ != nullptr) {
    watch_ = bucket_->remote().watch("hfdelta/refs/" + options_.ref, [this] { poke(); });
  }
  thread_ = std::thread([this] {
    base::name_this_thread("hfd-sync");
    run();
  });
}

void Syncer::stop() {
  stopping_ = true;
  watch_.reset();
  {
    const base::Lock lock(mutex_);
    wake_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Syncer::poke() {
  const base::Lock lock(mutex_);
  poked_ = true;
  wake_.notify_all();
}

lineage::VersionPtr Syncer::current() const {
  const base::Lock lock(mutex_);
  return versions_.empty() ? nullptr : versions_.front();
}

lineage::VersionPtr Syncer::version_with(const ContentHash& content) const {
  const base::Lock lock(mutex_);
  for (const lineage::VersionPtr& version : versions_) {
    if (version->manifest.contents.count(content) > 0) {
      return version;
    }
  }
  return nullptr;
}

void Syncer::set_current(const lineage::VersionPtr& version) {
  const base::Lock lock(mutex_);
  versions_.push_front(version);
  if (versions_.size() > versions_kept_max) {
    versions_.pop_back();
  }
}

void Syncer::record(const Error& error) {
  base::log(base::LogLevel::error, "sync: " + error.object + ": " + error.message);
  const base::Lock lock(mutex_);
  errors_.push_front(RecordedError{base::now_utc(), error});
  if (errors_.size() > errors_kept_max) {
    errors_.pop_back();
  }
}

void Syncer::set_state(const std::string& path, const char* state) {
  const base::Lock lock(mutex_);
  states_[path] = state;
}

// --- the thread ------------------------------------------------------------------------------

std::chrono::milliseconds Syncer::time_to_next_work() const {
  const auto now = base::SteadyClock::now();
  auto next = std::min(now + idle_wait_max, next_poll_);
  if (tree_.generation() != generation_done_) {
    next = std::min(next, std::max(tree_.last_change() + options_.quiet, not_before_));
  }
  return std::max(std::chrono::milliseconds(10), std::chrono::duration_cast<std::chrono::milliseconds>(next - now));
}

Syncer::CommitPtr Syncer::next_commit() {
  const base::Lock lock(mutex_);
  if (commits_.empty()) {
    return nullptr;
  }
  CommitPtr commit = commits_.front();
  commits_.pop_front();
  return commit;
}

void Syncer::run() {
  while (!stopping_) {
    bool poked = false;
    {
      const base::Lock lock(mutex_);
      if (!poked_ && commits_.empty() && !stopping_) {
        wake_.wait_until(mutex_, base::SteadyClock::now() + time_to_next_work());
      }
      poked = std::exchange(poked_, false);
    }
    if (stopping_) {
      break;
    }
    if (const CommitPtr commit = next_commit()) {
      Result<PublishOutcome> answer = publish_on_request(commit->request);
      const base::Lock lock(mutex_);
      commit->answer = std::move(answer);
      answered_.notify_all();
      continue;
    }
    if (poked || base::SteadyClock::now() >= next_poll_) {
      follow();
    }
    publish_when_quiet();
  }
}

// --- following -------------------------------------------------------------------------------

void Syncer::follow() {
  next_poll_ = base::SteadyClock::now() + options_.poll;
  if (bucket_ == nullptr) {
    return;
  }
  if (const auto followed = follow_once(); !followed.ok()) {
    record(followed.error());
  }
}

Result<bool> Syncer::follow_once() {
  HFD_TRY(const auto head, bucket_->head(options_.ref));
  const lineage::VersionPtr now = current();
  if (!head || (now && (now->id == head->version || now->manifest.sequence > head->sequence))) {
    return false;
  }
  HFD_TRY(const lineage::VersionPtr next, bucket_->version(head->version));
  HFD_TRY(const std::vector<ChangedName> changed, tree_.switch_to(now.get(), *next));
  set_current(next);
  base::log(base::LogLevel::info, "switched to version " + next->id.hex());
  if (hooks_.switched) {
    hooks_.switched(changed);
  }
  return true;
}

// --- publishing ------------------------------------------------------------------------------

bool Syncer::is_stale(const Snapshot& snapshot) const {
  return std::any_of(snapshot.entries.begin(), snapshot.entries.end(), [&](const SnapshotEntry& entry) {
    if (entry.node.kind != NodeKind::file || entry.node.place != Place::staged) {
      return false;
    }
    const auto now = tree_.get(entry.node.id);
    return now.ok() && now->change != entry.node.change;
  });
}

bool Syncer::differs(const std::vector<PublishFile>& files) const {
  static const std::vector<lineage::FileEntry> none;
  const lineage::VersionPtr now = current();
  const std::vector<lineage::FileEntry>& before = now ? now->manifest.files : none;
  if (files.size() != before.size()) {
    return true;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    const bool is_new = files[i].entry.kind == lineage::FileEntry::Kind::file && !files[i].known;
    if (is_new || !same_entry(files[i].entry, before[i])) {
      return true;
    }
  }
  return false;
}

Result<Syncer::Plan> Syncer::make_plan(bool partial) {
  Plan plan;
  HFD_TRY(plan.snapshot, tree_.snapshot());
  std::set<std::string> open_folders;
  for (const SnapshotEntry& entry : plan.snapshot.entries) {
    if (entry.node.kind == NodeKind::symlink &&
        !lineage::is_inside_symlink(entry.path, entry.node.symlink_target)) {
      continue;  // lives in this mount only: elsewhere it would lead somewhere else
    }
    const bool staged = entry.node.kind == NodeKind::file && entry.node.place == Place::staged;
    if (staged && (entry.node.writing || (hooks_.has_writer && hooks_.has_writer(entry.node.id)))) {
      plan.open_paths.push_back(entry.path);
      open_folders.insert(folder_of(entry.path));
    }
    PublishFile file;
    file.entry = entry_of(entry);
    file.known = entry.node.kind == NodeKind::file && !staged;
    if (staged) {
      file.open = [this, id = entry.node.id, path = entry.path]() -> Result<std::unique_ptr<base::ReadableBytes>> {
        HFD_TRY(base::Fd fd, tree_.open_data(id));
        HFD_TRY(const std::uint64_t bytes, base::file_bytes(fd, path));
        return std::unique_ptr<base::ReadableBytes>(std::make_unique<base::FileBytes>(std::move(fd), bytes, path));
      };
    }
    plan.files.push_back(std::move(file));
  }
  HFD_TRY(plan.incomplete, find_incomplete(plan.files));
  if (partial && !open_folders.empty()) {
    HFD_TRY_VOID(hold_back(plan, open_folders));
  }
  plan.changed = differs(plan.files);
  return plan;
}

/// Puts what the version beneath has in these folders in the place of what the tree has there.
Result<void> Syncer::hold_back(Plan& plan, const std::set<std::string>& folders) {
  const auto is_held = [&](const std::string& path) { return folders.count(folder_of(path)) > 0; };
  std::erase_if(plan.files, [&](const PublishFile& file) { return is_held(file.entry.path); });
  std::erase_if(plan.snapshot.entries, [&](const SnapshotEntry& entry) { return is_held(entry.path); });
  if (const lineage::VersionPtr now = current()) {
    for (const lineage::FileEntry& entry : now->manifest.files) {
      if (is_held(entry.path)) {
        PublishFile file;
        file.entry = entry;
        file.known = entry.kind == lineage::FileEntry::Kind::file;
        plan.files.push_back(std::move(file));
      }
    }
  }
  std::sort(plan.files.begin(), plan.files.end(),
            [](const PublishFile& a, const PublishFile& b) { return a.entry.path < b.entry.path; });
  plan.changed = differs(plan.files);
  return {};
}

/// For status: which files are not whole, and why.
void Syncer::note_held(const Plan& plan) {
  const base::Lock lock(mutex_);
  held_.clear();
  for (const IncompleteFile& file : plan.incomplete) {
    held_[file.path] = file.reason;
  }
}

void Syncer::publish_when_quiet() {
  const auto now = base::SteadyClock::now();
  const std::uint64_t generation = tree_.generation();
  if (options_.read_only || bucket_ == nullptr || generation == generation_done_ || now < not_before_ ||
      now < tree_.last_change() + options_.quiet) {
    return;
  }
  auto plan = make_plan(false);
  if (!plan.ok()) {
    record(plan.error());
    not_before_ = now + back_off_max;
    return;
  }
  if (!plan->open_paths.empty()) {
    not_before_ = now + std::chrono::milliseconds(200);
    return;
  }
  std::set<std::string> held_folders;
  note_held(*plan);
  for (const IncompleteFile& file : plan->incomplete) {
    held_folders.insert(folder_of(file.path));
  }
  if (!held_folders.empty()) {
    [[maybe_unused]] const auto held = hold_back(*plan, held_folders);
  }
  if (!plan->changed) {
    generation_done_ = generation;
    return;
  }
  const auto published = publish_plan(*plan, "");
  if (published.ok()) {
    back_off_ = std::chrono::milliseconds(0);
    if (tree_.generation() == generation) {
      generation_done_ = generation;
    }
    return;
  }
  if (published.error().code == ErrorCode::stale || published.error().code == ErrorCode::conflict) {
    return;  // written again meanwhile, or another writer was first: look again at once
  }
  record(published.error());
  back_off_ = std::clamp(back_off_ * 2, back_off_min, back_off_max);
  not_before_ = base::SteadyClock::now() + back_off_;
}

/// What was open for writing when a daemon died may be half a file: only the user can tell.
Result<void> Syncer::check_nothing_left_by_crash() const {
  HFD_TRY(const std::vector<StagedFile> staged, tree_.staged_files());
  std::vector<std::string> names;
  for (const StagedFile& file : staged) {
    if (file.left_by_crash && !file.junk) {
      names.push_back(file.path);
    }
  }
  if (names.empty()) {
    return {};
  }
  return Error{ErrorCode::incomplete, "held back: files were open for writing when the daemon ended", name_some(names),
               "write them again, or commit --partial to publish what there is"};
}

Result<PublishOutcome> Syncer::publish_on_request(const CommitRequest& request) {
  if (bucket_ == nullptr || options_.read_only) {
    return Error{ErrorCode::read_only, "cannot commit: the mount is read-only"}.with_hint("mount it with --bucket URI");
  }
  if (request.partial) {
    HFD_TRY_VOID(tree_.forgive());
  }
  Error last{ErrorCode::stale, "files kept changing while they were published"};
  for (int i = 0; i < commit_tries_max && !stopping_; ++i) {
    const std::uint64_t generation = tree_.generation();
    HFD_TRY(Plan plan, make_plan(request.partial));
    note_held(plan);
    if (!request.partial) {
      HFD_TRY_VOID(check_nothing_left_by_crash());
    }
    if (!request.partial && !plan.open_paths.empty()) {
      return Error{ErrorCode::incomplete, "held back: files are still open for writing", name_some(plan.open_paths),
                   "close them, or commit --partial without them"};
    }
    if (!request.partial && !plan.incomplete.empty()) {
      std::vector<std::string> names;
      for (const IncompleteFile& file : plan.incomplete) {
        names.push_back(file.path + " (" + file.reason + ")");
      }
      return Error{ErrorCode::incomplete, "held back: the set is incomplete", name_some(names),
                   "write what is missing, or commit --partial"};
    }
    if (!plan.changed) {
      PublishOutcome unchanged;
      unchanged.version = current();
      return unchanged;
    }
    auto published = publish_plan(plan, request.message);
    if (published.ok()) {
      if (tree_.generation() == generation) {
        generation_done_ = generation;
      }
      return published;
    }
    last = std::move(published).error();
    if (last.code != ErrorCode::stale && last.code != ErrorCode::conflict) {
      record(last);
      return last;
    }
  }
  return last;
}

Result<PublishOutcome> Syncer::publish_plan(Plan& plan, const std::string& message) {
  PublishRequest request;
  request.ref = options_.ref;
  request.message = message;
  request.parent = current();
  request.base = base_;
  request.files = std::move(plan.files);
  request.temporary_folder = tree_.temporary_folder();
  request.cancelled = [this, &plan] { return stopping_.load() || is_stale(plan.snapshot); };
  request.progress = [this](const std::string& path, const char* state, std::uint64_t /*done*/,
                            std::uint64_t /*total*/) { set_state(path, state); };
  auto outcome = publish_version(*bucket_, request, open_content_, pool_);
  {
    const base::Lock lock(mutex_);
    states_.clear();
  }
  if (!outcome.ok()) {
    if (outcome.error().code == ErrorCode::conflict) {
      // Another writer was first. Take its version beneath ours; the caller tries again on top of it.
      HFD_TRY([[maybe_unused]] const bool moved, follow_once());
    }
    return outcome;
  }
  HFD_TRY_VOID(tree_.published(plan.snapshot, *outcome->version));
  set_current(outcome->version);
  const base::Lock lock(mutex_);
  last_version_ = outcome->version->id;
  last_time_ = base::now_utc();
  return outcome;
}

// --- for other threads -----------------------------------------------------------------------

Result<PublishOutcome> Syncer::commit(const CommitRequest& request, base::Deadline deadline) {
  const auto commit = std::make_shared<Commit>();
  commit->request = request;
  const base::Lock lock(mutex_);
  commits_.push_back(commit);
  wake_.notify_all();
  while (!commit->answer && !stopping_) {
    if (!answered_.wait_until(mutex_, std::min(deadline, base::SteadyClock::now() + idle_wait_max)) &&
        base::SteadyClock::now() >= deadline) {
      return Error{ErrorCode::unavailable, "the commit is not done yet: the time given is over", "",
                   "it goes on in the background; see hfdeltafs status"};
    }
  }
  if (!commit->answer) {
    return Error{ErrorCode::left_in_staging, "the mount is ending"};
  }
  return std::move(*commit->answer);
}

Result<void> Syncer::drain(base::Deadline deadline) {
  const bool publishes = bucket_ != nullptr && !options_.read_only;
  std::optional<Error> why;
  if (publishes && tree_.generation() != generation_done_) {
    const auto committed = commit({}, deadline);
    if (!committed.ok()) {
      why = committed.error();
    }
  }
  HFD_TRY(const std::vector<StagedFile> staged, tree_.staged_files());
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  for (const StagedFile& file : staged) {
    if (!file.junk) {
      ++files;
      bytes += file.bytes;
    }
  }
  if (publishes && files > 0) {
    return Error{ErrorCode::left_in_staging,
                 "left in staging: " + std::to_string(files) + " files, " + std::to_string(bytes) + " bytes", "",
                 why ? why->message + (why->object.empty() ? "" : " (" + why->object + ")")
                     : "mount again to go on"};
  }
  return {};
}

SyncStatus Syncer::status() const {
  SyncStatus status;
  const auto staged = tree_.staged_files();
  std::set<NodeId> open_ids;
  if (staged.ok() && hooks_.has_writer) {
    for (const StagedFile& file : *staged) {
      if (hooks_.has_writer(file.id)) {
        open_ids.insert(file.id);
      }
    }
  }
  const base::Lock lock(mutex_);
  if (staged.ok()) {
    for (const StagedFile& file : *staged) {
      const bool is_open = file.writing || open_ids.count(file.id) > 0;
      StagedState state{file.path, file.bytes, is_open ? "writing" : "quiet", ""};
      if (file.junk) {
        state.reason = "a temporary name, not published";
      } else if (file.left_by_crash) {
        state.state = "incomplete";
        state.reason = "was open for writing when the daemon ended";
      } else if (const auto held = held_.find(file.path); held != held_.end()) {
        state.state = "incomplete";
        state.reason = held->second;
      } else if (const auto found = states_.find(file.path); found != states_.end()) {
        state.state = found->second;
      }
      status.staged_bytes += file.bytes;
      status.staged.push_back(std::move(state));
    }
    // A file that is not there at all (a missing shard) is listed by the index that names it.
    for (const auto& [path, reason] : held_) {
      const bool listed = std::any_of(status.staged.begin(), status.staged.end(),
                                      [&name = path](const StagedState& state) { return state.path == name; });
      if (!listed) {
        status.staged.push_back(StagedState{path, 0, "incomplete", reason});
      }
    }
  }
  status.errors.assign(errors_.begin(), errors_.end());
  status.last_version = last_version_;
  status.last_time = last_time_;
  return status;
}

}  // namespace hfd::publish
