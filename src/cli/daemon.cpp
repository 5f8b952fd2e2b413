// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/log.hpp"
#include "cli/control.hpp"
#include "cli/report.hpp"
#include "cli/status_document.hpp"
#include "fuse/session.hpp"
#include "vfs/file_system.hpp"

namespace hfd::cli {
namespace {

using base::Json;

/// umount(8) has taken the mount away already; what is staged may still go out for so long.
constexpr std::chrono::milliseconds drain_after_unmount{30'000};
/// A signal ends the process in 10 s whatever is stuck: so long for publishing, then so long for requests.
constexpr std::chrono::milliseconds drain_on_signal{4'000};
constexpr std::chrono::milliseconds end_on_signal{4'000};
constexpr std::size_t encode_threads_max = 8;
constexpr int exit_left_in_staging = 6;

/// Glibc keeps freed blocks of many threads apart; with a few arenas, and large blocks mapped and unmapped
/// singly, the resident memory stays near what is in use.
void keep_memory_small() {
  constexpr int arenas = 2;
  constexpr int map_threshold_bytes = 128 << 10;
  ::mallopt(M_ARENA_MAX, arenas);
  ::mallopt(M_MMAP_THRESHOLD, map_threshold_bytes);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 20);
}

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&signals, number);
  }
  return signals;
}

class Daemon {
 public:
  Daemon(const DaemonOptions& options, const MountReport& report) : options_(options), report_(report) {}
  ~Daemon() { take_down(); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  Result<void> build();
  int serve();

 private:
  Result<void> lock_staging();
  Result<void> open_tree();
  Result<void> show_start();
  void take_down();
  void watch_signals();
  Json answer(const Json& request);
  Json answer_commit(const Json& request);
  Json status() const;
  vfs::VersionSource version_source();

  const DaemonOptions& options_;
  const MountReport& report_;
  const base::UnixNanoseconds started_ = base::now_utc();
  bool read_only_ = true;
  std::string tree_folder_;
  base::Fd staging_lock_;  ///< read-only mounts; the work tree has its own otherwise

  std::unique_ptr<base::ThreadPool> encoders_;
  std::unique_ptr<Sources> sources_;
  std::unique_ptr<store::ChunkStore> cache_;
  std::unique_ptr<rebuild::Rebuilder> rebuilder_;
  std::unique_ptr<publish::WorkTree> tree_;
  std::unique_ptr<publish::Syncer> syncer_;
  std::unique_ptr<vfs::FileSystem> files_;
  std::unique_ptr<ControlServer> control_;
  std::unique_ptr<fuse::Session> session_;
  std::thread signals_;
  std::atomic<bool> served_{false};
};

Result<void> Daemon::lock_staging() {
  HFD_TRY_VOID(base::make_folders(options_.folders.staging, 0700));
  if (!read_only_) {
    tree_folder_ = options_.folders.staging;
    return {};
  }
  HFD_TRY(staging_lock_, base::open_file(options_.folders.staging + "/lock", O_RDWR | O_CREAT, 0600));
  if (::flock(staging_lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::busy, "another hfdeltafs uses this staging folder", options_.folders.staging,
                 "give each mount its own --cache-dir"};
  }
  // A read-only mount keeps nothing: its tree is made anew from the version that it shows.
  tree_folder_ = options_.folders.staging + "/view";
  std::error_code failure;
  std::filesystem::remove_all(tree_folder_, failure);
  return {};
}

Result<void> Daemon::open_tree() {
  publish::WorkTreeOptions tree;
  tree.folder = tree_folder_;
  tree.bucket_uri = sources_->bucket() != nullptr ? sources_->bucket_uri() : sources_->source_uri();
  tree.ref = options_.spec.ref;
  tree.uid = ::geteuid();
  tree.gid = ::getegid();
  HFD_TRY(tree_, publish::WorkTree::open(tree));
  return show_start();
}

/// Brings the tree of an earlier session to the version that the ref is at now.
Result<void> Daemon::show_start() {
  const lineage::VersionPtr start = sources_->start();
  const auto beneath = tree_->version();
  if (!start || (beneath && *beneath == start->id)) {
    return {};
  }
  lineage::VersionPtr previous;
  if (beneath) {
    auto known = sources_->version(*beneath);
    if (!known.ok()) {
      return Error{ErrorCode::conflict, "the staging was made on a version that is gone: " + known.error().message,
                   beneath->hex(), "its files are in " + tree_->folder() + "/data"};
    }
    previous = std::move(*known);
  }
  HFD_TRY([[maybe_unused]] const auto changed, tree_->switch_to(previous.get(), *start));
  return {};
}

Result<void> Daemon::build() {
  keep_memory_small();
  encoders_ = std::make_unique<base::ThreadPool>("hfd-encode", std::min(base::processor_count(), encode_threads_max));
  HFD_TRY(sources_, Sources::open(options_.spec, *encoders_));
  read_only_ = options_.read_only || sources_->bucket() == nullptr || !options_.spec.revision.empty();
  HFD_TRY_VOID(lock_staging());
  HFD_TRY(cache_, store::ChunkStore::open({options_.folders.cache, options_.cache_bytes_max}));
  rebuild::RebuildOptions rebuild;
  rebuild.decode_threads = base::processor_count();
  rebuild.deadline = options_.spec.deadline;
  rebuilder_ = rebuild::Rebuilder::create(sources_->objects(), sources_->upstream_finder(), cache_.get(), rebuild);
  HFD_TRY_VOID(open_tree());

  publish::SyncOptions sync;
  sync.ref = options_.spec.ref;
  sync.read_only = read_only_;
  sync.quiet = options_.quiet;
  sync.poll = options_.poll;
  const auto open_content = [this](const lineage::VersionPtr& version, const ContentHash& content) {
    return Result<std::unique_ptr<base::ReadableBytes>>(rebuilder_->open({version, content}));
  };
  // A fixed revision does not follow its ref.
  lineage::Bucket* bucket = options_.spec.revision.empty() ? sources_->bucket() : nullptr;
  syncer_ = std::make_unique<publish::Syncer>(*tree_, bucket, open_content, *encoders_, sync, sources_->start(),
                                              sources_->base());
  vfs::FileSystemOptions vfs;
  vfs.read_only = read_only_;
  vfs.sync_on_close = options_.sync_on_close;
  vfs.uid = ::geteuid();
  vfs.gid = ::getegid();
  vfs.deadline = options_.spec.deadline;
  files_ = std::make_unique<vfs::FileSystem>(*tree_, *syncer_, *rebuilder_, version_source(), vfs);
  HFD_TRY(control_, ControlServer::open(options_.folders.staging, [this](const Json& request) { return answer(request); }));
  HFD_TRY(session_, fuse::Session::mount(*files_, {options_.mount_point, options_.source_text, read_only_,
                                                   options_.allow_other}));
  return {};
}

vfs::VersionSource Daemon::version_source() {
  vfs::VersionSource source;
  source.version = [this](const VersionId& id) -> Result<lineage::VersionPtr> {
    const lineage::VersionPtr current = syncer_->current();
    if (current && current->id == id) {
      return current;
    }
    return sources_->version(id);
  };
  source.version_ids = [this] { return sources_->version_ids(); };
  source.refs = [this] { return sources_->refs(); };
  source.status = [this] { return status().dump_pretty() + "\n"; };
  return source;
}

Json Daemon::status() const {
  return status_document({options_, *sources_, *syncer_, *rebuilder_, *cache_, files_ ? files_->reads() : 0,
                          files_ ? files_->read_errors() : std::vector<publish::RecordedError>(), started_, read_only_, options_.folders.staging + "/control.sock"});
}

Json Daemon::answer(const Json& request) {
  const base::Json* command = request.find("command");
  const std::string name = command != nullptr && command->as_string() != nullptr ? *command->as_string() : "";
  if (name == "status") {
    return status();
  }
  if (name == "commit") {
    return answer_commit(request);
  }
  if (name == "drain") {
    const auto timeout = request.unsigned_member("timeout_ms");
    const auto drained =
        syncer_->drain(base::deadline_in(std::chrono::milliseconds(timeout.ok() ? *timeout : 60'000)));
    return drained.ok() ? Json::object() : error_document(drained.error());
  }
  return error_document(Error{ErrorCode::invalid_argument, "the daemon does not know this request", name});
}

Json Daemon::answer_commit(const Json& request) {
  const auto message = request.string_member("message");
  const auto timeout = request.unsigned_member("timeout_ms");
  const base::Json* partial = request.find("partial");
  publish::CommitRequest commit;
  commit.message = message.ok() ? *message : "";
  commit.partial = partial != nullptr && partial->as_bool() != nullptr && *partial->as_bool();
  const auto outcome =
      syncer_->commit(commit, base::deadline_in(std::chrono::milliseconds(timeout.ok() ? *timeout : 3'600'000)));
  if (!outcome.ok()) {
    return error_document(outcome.error());
  }
  const lineage::VersionPtr& version = outcome->version;
  Json document = Json::object();
  document.set("version", version ? Json(version->id.hex()) : Json())
      .set("parent", version && version->manifest.parent ? Json(version->manifest.parent->hex()) : Json())
      .set("seq", version ? Json(version->manifest.sequence) : Json(0))
      .set("ref", options_.spec.ref)
      .set("files", outcome->file_count)
      .set("full_bytes", outcome->full_bytes)
      .set("stored_bytes", outcome->stored_bytes)
      .set("meta_bytes", outcome->meta_bytes)
      .set("seconds", outcome->seconds);
  return document;
}

void Daemon::watch_signals() {
  const sigset_t signals = ending_signals();
  const timespec look_around{0, 200'000'000};
  while (!served_) {
    if (sigtimedwait(&signals, nullptr, &look_around) < 0) {
      continue;
    }
    base::log(base::LogLevel::info, "ending on a signal");
    const auto drained = syncer_->drain(base::deadline_in(drain_on_signal));
    session_->end();
    const base::Deadline deadline = base::deadline_in(end_on_signal);
    while (!served_ && base::SteadyClock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!served_) {
      // A program still holds files open on the detached mount, or a request is stuck: the kernel ends both
      // with this process. What was written is in the journal.
      ::_exit(drained.ok() ? 0 : exit_left_in_staging);
    }
  }
}

int Daemon::serve() {
  signals_ = std::thread([this] {
    base::name_this_thread("hfd-signals");
    watch_signals();
  });
  syncer_->start({[this](publish::NodeId id) { return files_->has_writer(id); },
                  [this](const std::vector<publish::ChangedName>& names) { session_->names_changed(names); }});
  const auto served = session_->serve([this] {
    const lineage::VersionPtr version = syncer_->current();
    report_(MountAnswer{version ? version->id.hex() : "none", read_only_});
  });
  served_ = true;
  signals_.join();
  int code = 0;
  if (!served.ok()) {
    base::log(base::LogLevel::error, error_line(served.error()));
    code = 1;
  }
  if (const auto drained = syncer_->drain(base::deadline_in(drain_after_unmount)); !drained.ok()) {
    base::log(base::LogLevel::error, error_line(drained.error()));
    code = exit_left_in_staging;
  }
  return code;
}

void Daemon::take_down() {
  control_.reset();  // no more questions
  if (syncer_) {
    syncer_->stop();
  }
  // serve() is over: no request comes in any more, but some may still be waiting for their bytes. Their answers
  // go through the file system to the session, so both outlive the rebuilder, which waits for them.
  if (files_) {
    files_->finish();
  }
  rebuilder_.reset();
  files_.reset();
  session_.reset();
  syncer_.reset();
  tree_.reset();
  cache_.reset();
  sources_.reset();
  encoders_.reset();
}

}  // namespace

int run_daemon(const DaemonOptions& options, const MountReport& report) {
  // All threads inherit this: signals are taken by one thread, in its own time.
  const sigset_t signals = ending_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): nothing to do if it fails
  Daemon daemon(options, report);
  if (auto built = daemon.build(); !built.ok()) {
    report(std::move(built).error());
    return 1;
  }
  return daemon.serve();
}

}  // namespace hfd::cli
