// SPDX-License-Identifier: Apache-2.0
// Runs blocking reads on a few threads, for remotes whose I/O blocks (folders). Gives each read its
// answer by its deadline even when the system call hangs (a dead NFS server), and keeps one stuck
// object from taking all threads: at most a quarter of them work on one object.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "remote/remote.hpp"

namespace hfd::remote {

class ReadQueue {
 public:
  using Work = std::function<Result<base::Bytes>()>;

  ReadQueue();
  /// Answers everything, then joins; waits for system calls that hang.
  ~ReadQueue() = default;
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  /// Never waits. `done` runs once: with the result of `work`, or `unavailable` at the deadline.
  /// The queue has no bound of its own: readers are bounded (rebuild admits a fixed number).
  void post(const std::string& object, base::Deadline deadline, Work work, ReadDone done);

 private:
  /// Page-cache reads take microseconds; more threads only help slow disks and hung servers.
  static constexpr std::size_t thread_count = 16;
  static constexpr std::size_t per_object_max = 4;

  struct Read;
  struct ObjectState {
    std::size_t running = 0;
    std::deque<std::shared_ptr<Read>> waiting;
  };

  void start(const std::shared_ptr<Read>& read);
  void finish(const std::shared_ptr<Read>& read, Result<base::Bytes> result);
  void run_timer();

  base::Mutex mutex_;
  base::Condition timer_wake_;
  std::unordered_map<std::string, ObjectState> objects_ HFD_GUARDED_BY(mutex_);
  std::multimap<base::Deadline, std::shared_ptr<Read>> pending_ HFD_GUARDED_BY(mutex_);
  bool stopping_ HFD_GUARDED_BY(mutex_) = false;
  /// Stops and joins run_timer(). Outlives the pool, whose last reads still have deadlines.
  struct Timer {
    ReadQueue& queue;
    std::thread thread;
    ~Timer();
  };
  Timer timer_;
  base::ThreadPool pool_;
};

}  // namespace hfd::remote
