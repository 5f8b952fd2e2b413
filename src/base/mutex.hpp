// SPDX-License-Identifier: Apache-2.0
// A mutex that clang's thread-safety analysis understands (std::mutex of libstdc++ is unannotated).
// Every guarded field says HFD_GUARDED_BY; the lock order is in src/ARCHITECTURE.md.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define HFD_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define HFD_THREAD_ATTRIBUTE(x)
#endif
#define HFD_CAPABILITY(x) HFD_THREAD_ATTRIBUTE(capability(x))
#define HFD_SCOPED_CAPABILITY HFD_THREAD_ATTRIBUTE(scoped_lockable)
#define HFD_GUARDED_BY(x) HFD_THREAD_ATTRIBUTE(guarded_by(x))
#define HFD_REQUIRES(...) HFD_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define HFD_EXCLUDES(...) HFD_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define HFD_ACQUIRE(...) HFD_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define HFD_RELEASE(...) HFD_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define HFD_NO_THREAD_SAFETY_ANALYSIS HFD_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace hfd::base {

class HFD_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() HFD_ACQUIRE() { mutex_.lock(); }
  void unlock() HFD_RELEASE() { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

/// Holds a Mutex for a scope; may be released early and taken again.
class HFD_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) HFD_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() HFD_RELEASE() {
    if (held_) {
      mutex_.unlock();
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  void unlock() HFD_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }
  void lock() HFD_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

/// A condition variable for Mutex. wait() may wake up for no reason: callers loop.
class Condition {
 public:
  void wait(Mutex& mutex) HFD_REQUIRES(mutex) HFD_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// False when the deadline passed.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point deadline)
      HFD_REQUIRES(mutex) HFD_NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool woken = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return woken;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace hfd::base
