// SPDX-License-Identifier: Apache-2.0
// A fixed set of named threads that run posted tasks in order. Used for decoding, encoding and the
// I/O of slow file calls. Tasks must not wait for other tasks of the same pool.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"

namespace hfd::base {

class ThreadPool {
 public:
  /// `name` is at most 12 bytes (the kernel shows 15).
  ThreadPool(const std::string& name, std::size_t thread_count);
  /// Runs what is queued, then joins.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Queues a task; never blocks. The queue has no bound of its own: posters are bounded (one task
  /// per admitted block rebuild, or per block of an encode window).
  void post(std::function<void()> task);
  std::size_t thread_count() const { return threads_.size(); }

 private:
  void run();

  Mutex mutex_;
  Condition wake_;
  std::deque<std::function<void()>> tasks_ HFD_GUARDED_BY(mutex_);
  bool stopping_ HFD_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

/// Number of processors this process may use, at least 1.
std::size_t processor_count();
/// Names the calling thread (at most 15 bytes are shown).
void name_this_thread(const std::string& name);

}  // namespace hfd::base
