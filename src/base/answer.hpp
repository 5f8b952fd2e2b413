// SPDX-License-Identifier: Apache-2.0
// One answer, handed from the thread that has it to the thread that waits for it: how blocking callers
// use asynchronous calls. Shared between the two (the call-back may outlive a caller that gave up).
#pragma once

#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "hfdeltafs/result.hpp"

namespace hfd::base {

template <class T>
class Answer {
 public:
  /// Called once.
  void give(Result<T> value) {
    const Lock lock(mutex_);
    value_ = std::move(value);
    // Under the lock: once it is released the waiting thread may destroy this object.
    there_.notify_all();
  }
  /// Called once; waits for give().
  Result<T> wait() {
    const Lock lock(mutex_);
    while (!value_) {
      there_.wait(mutex_);
    }
    return std::move(*value_);
  }

 private:
  Mutex mutex_;
  Condition there_;
  std::optional<Result<T>> value_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::base
