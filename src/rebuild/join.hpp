// SPDX-License-Identifier: Apache-2.0
// Waits, without a thread, for several asynchronous parts: the last part that ends runs `done` with
// the first error, if any. Used inside rebuild only.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "hfdeltafs/result.hpp"

namespace hfd::rebuild {

using Done = std::function<void(Result<void>)>;

/// Made with one part counted for the maker, who calls end({}) after adding the others: so `done`
/// cannot run before all parts are known, even if some end at once.
class Join {
 public:
  static std::shared_ptr<Join> create(Done done) { return std::make_shared<Join>(std::move(done)); }
  explicit Join(Done done) : done_(std::move(done)) {}

  void add() { left_.fetch_add(1, std::memory_order_relaxed); }
  void end(Result<void> part) {
    if (!part.ok()) {
      const base::Lock lock(mutex_);
      if (!error_) {
        error_ = std::move(part).error();
      }
    }
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
      return;
    }
    std::optional<Error> error;
    {
      const base::Lock lock(mutex_);
      error = std::move(error_);
    }
    done_(error ? Result<void>(std::move(*error)) : Result<void>());
  }

 private:
  std::atomic<std::size_t> left_{1};
  base::Mutex mutex_;
  std::optional<Error> error_ HFD_GUARDED_BY(mutex_);
  Done done_;
};

}  // namespace hfd::rebuild
