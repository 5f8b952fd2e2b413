// SPDX-License-Identifier: Apache-2.0
#include "lineage/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/mutex.hpp"

namespace hfd::lineage {
namespace {

/// Shared by the caller, who waits, and the tasks; lives on the caller's stack.
struct Round {
  base::Mutex mutex;
  base::Condition ended;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::size_t running HFD_GUARDED_BY(mutex) = 0;
  std::optional<Error> error HFD_GUARDED_BY(mutex);
};

void run(Round& round, std::size_t count, const std::function<Result<void>(std::size_t)>& work) {
  while (!round.failed.load(std::memory_order_relaxed)) {
    const std::size_t item = round.next.fetch_add(1, std::memory_order_relaxed);
    if (item >= count) {
      break;
    }
    if (auto done = work(item); !done.ok()) {
      round.failed.store(true, std::memory_order_relaxed);
      const base::Lock lock(round.mutex);
      if (!round.error) {
        round.error = std::move(done).error();
      }
    }
  }
  const base::Lock lock(round.mutex);
  --round.running;
  round.ended.notify_all();
}

}  // namespace

Result<void> parallel_for(base::ThreadPool& pool, std::size_t count,
                          const std::function<Result<void>(std::size_t)>& work) {
  Round round;
  const std::size_t tasks = std::min(count, pool.thread_count());
  {
    const base::Lock lock(round.mutex);
    round.running = tasks;
  }
  for (std::size_t i = 0; i < tasks; ++i) {
    pool.post([&round, count, &work] { run(round, count, work); });
  }
  const base::Lock lock(round.mutex);
  while (round.running > 0) {
    round.ended.wait(round.mutex);
  }
  if (round.error) {
    return std::move(*round.error);
  }
  return {};
}

}  // namespace hfd::lineage
