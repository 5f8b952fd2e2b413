// SPDX-License-Identifier: Apache-2.0
// Runs the same work for many items on a pool and waits for all. Used where files are hashed,
// stored or checked one by one. The caller must not be a thread of the pool.
#pragma once

#include <cstddef>
#include <functional>

#include "hfdeltafs/result.hpp"

#include "base/thread_pool.hpp"

namespace hfd::lineage {

/// Calls work(0) … work(count - 1), several at once. After the first error no more items are begun;
/// that error is returned when those under way have ended.
Result<void> parallel_for(base::ThreadPool& pool, std::size_t count,
                          const std::function<Result<void>(std::size_t)>& work);

}  // namespace hfd::lineage
