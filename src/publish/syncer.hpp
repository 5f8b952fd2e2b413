// SPDX-License-Identifier: Apache-2.0
// Keeps a work tree and a ref of a bucket together: groups what was written into versions and publishes
// them (quiet time or commit), and follows the ref when others move it. One thread does both, so that
// the version beneath the tree changes in one place. Used by the daemon; knows no kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "publish/publisher.hpp"
#include "publish/work_tree.hpp"

namespace hfd::publish {

struct SyncOptions {
  std::string ref = "main";
  bool read_only = false;
  std::chrono::milliseconds quiet{5'000};
  std::chrono::milliseconds poll{10'000};
};

/// How the syncer speaks to the file system above it. Called without locks held, from its thread.
struct SyncHooks {
  /// True when somebody has the node open for writing now.
  std::function<bool(NodeId)> has_writer;
  /// Names that mean something else since a switch to another version.
  std::function<void(const std::vector<ChangedName>&)> switched;
};

struct CommitRequest {
  std::string message;
  bool partial = false;  ///< publish sets that are incomplete, and files left by a crash
};

/// What is waiting in staging, and why.
struct StagedState {
  std::string path;
  std::uint64_t bytes = 0;
  std::string state;   ///< writing | quiet | encoding | uploading | incomplete
  std::string reason;
};

struct RecordedError {
  base::UnixNanoseconds time = 0;
  Error error;
};

struct SyncStatus {
  std::vector<StagedState> staged;
  std::uint64_t staged_bytes = 0;
  std::optional<VersionId> last_version;
  base::UnixNanoseconds last_time = 0;
  std::vector<RecordedError> errors;
};

class Syncer {
 public:
  /// `bucket` may be null (a base alone: nothing to publish to or to follow). `start` is the version that
  /// the tree shows now (null: an empty bucket); `base` is version 0 or null. References must outlive this.
  Syncer(WorkTree& tree, lineage::Bucket* bucket, ContentOpener open_content, base::ThreadPool& pool,
         SyncOptions options, lineage::VersionPtr start, lineage::VersionPtr base);
  ~Syncer();
  Syncer(const Syncer&) = delete;
  Syncer& operator=(const Syncer&) = delete;

  /// Starts the thread. Call once, when the file system above is there.
  void start(SyncHooks hooks);
  /// Ends the thread; an encode under way is given up, nothing staged is lost.
  void stop();

  /// The version beneath the tree; null for an empty bucket.
  lineage::VersionPtr current() const;
  /// The same, or an earlier one of this session that knows the content. nullptr when none does.
  lineage::VersionPtr version_with(const ContentHash& content) const;
  const lineage::VersionPtr& base() const { return base_; }
  const SyncOptions& options() const { return options_; }

  /// Publishes what is staged and waits. incomplete: sets that are not whole or files still open for
  /// writing, named. An outcome without a version change when there was nothing to publish (its `version`
  /// is the current one; null in an empty bucket). unavailable when `deadline` passes first.
  Result<PublishOutcome> commit(const CommitRequest& request, base::Deadline deadline);
  /// Publishes what can be published before the deadline; left_in_staging when something could not.
  Result<void> drain(base::Deadline deadline);
  /// Looks at the ref soon.
  void poke();

  SyncStatus status() const;

 private:
  struct Commit {
    CommitRequest request;
    std::optional<Result<PublishOutcome>> answer;
    bool abandoned = false;
  };
  using CommitPtr = std::shared_ptr<Commit>;
  /// The files of one publish: what goes out, and what is held back.
  struct Plan {
    Snapshot snapshot;              ///< only the entries that go out
    std::vector<PublishFile> files;
    std::vector<std::string> open_paths;
    std::vector<IncompleteFile> incomplete;
    bool changed = false;
  };

  void run();
  CommitPtr next_commit();
  void follow();
  Result<bool> follow_once();
  void publish_when_quiet();
  Result<PublishOutcome> publish_on_request(const CommitRequest& request);
  Result<PublishOutcome> publish_plan(Plan& plan, const std::string& message);
  Result<Plan> make_plan(bool partial);
  Result<void> hold_back(Plan& plan, const std::set<std::string>& folders);
  void note_held(const Plan& plan);
  Result<void> check_nothing_left_by_crash() const;
  bool differs(const std::vector<PublishFile>& files) const;
  bool is_stale(const Snapshot& snapshot) const;
  void set_current(const lineage::VersionPtr& version);
  void set_state(const std::string& path, const char* state);
  void record(const Error& error);
  std::chrono::milliseconds time_to_next_work() const;

  WorkTree& tree_;
  lineage::Bucket* bucket_;
  const ContentOpener open_content_;
  base::ThreadPool& pool_;
  const SyncOptions options_;
  const lineage::VersionPtr base_;
  SyncHooks hooks_;
  std::unique_ptr<remote::Watch> watch_;
  std::thread thread_;

  // Used by the thread only.
  /// Of the tree, when it was last looked at for publishing. Written by the thread, read by drain() too.
  std::atomic<std::uint64_t> generation_done_{~std::uint64_t{0}};
  base::SteadyClock::time_point next_poll_{};
  base::SteadyClock::time_point not_before_{};  ///< back-off after a failed publish
  std::chrono::milliseconds back_off_{0};

  mutable base::Mutex mutex_;
  base::Condition wake_;
  base::Condition answered_;
  std::atomic<bool> stopping_{false};
  bool poked_ HFD_GUARDED_BY(mutex_) = false;
  std::deque<CommitPtr> commits_ HFD_GUARDED_BY(mutex_);
  std::deque<lineage::VersionPtr> versions_ HFD_GUARDED_BY(mutex_);  ///< current first, a few earlier ones after it
  std::map<std::string, const char*> states_ HFD_GUARDED_BY(mutex_);
  std::map<std::string, std::string> held_ HFD_GUARDED_BY(mutex_);   ///< path -> why it is incomplete
  std::deque<RecordedError> errors_ HFD_GUARDED_BY(mutex_);
  std::optional<VersionId> last_version_ HFD_GUARDED_BY(mutex_);
  base::UnixNanoseconds last_time_ HFD_GUARDED_BY(mutex_) = 0;
};

}  // namespace hfd::publish
