// SPDX-License-Identifier: Apache-2.0
// Runs the coding of blocks on a thread pool and gives the results back in order. Holds a bounded
// number of blocks. Writer only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "codec/block_codec.hpp"
#include "codec/encode_plan.hpp"

namespace hfd::codec {

/// One block on its way through the encoder.
struct BlockJob {
  std::uint64_t block = 0;
  ByteRange range;
  base::Bytes target;
  CodedBlock coded;
  base::Xxh128 hash{};
  std::uint64_t changed = 0;
  std::optional<Error> error;
};

class EncodeWindow {
 public:
  /// All arguments must outlive the window.
  EncodeWindow(const EncodePlan& plan, const std::vector<SourceFile>& sources,
               base::ThreadPool& pool);
  /// Waits for the jobs that run.
  ~EncodeWindow();
  EncodeWindow(const EncodeWindow&) = delete;
  EncodeWindow& operator=(const EncodeWindow&) = delete;

  bool full() const { return slots_.size() >= slots_max_; }
  bool empty() const { return slots_.empty(); }
  /// Precondition: !full().
  void start(std::unique_ptr<BlockJob> job);
  /// Waits for the oldest job. Precondition: !empty().
  std::unique_ptr<BlockJob> finish_oldest();

 private:
  struct Slot {
    std::unique_ptr<BlockJob> job;
    bool done = false;
  };
  void run(BlockJob& job) const;

  const EncodePlan& plan_;
  const std::vector<SourceFile>& sources_;
  base::ThreadPool& pool_;
  std::size_t slots_max_;
  std::deque<std::unique_ptr<Slot>> slots_;  // touched by the caller's thread only
  base::Mutex mutex_;                        // guards `done` of every slot
  base::Condition finished_;
};

}  // namespace hfd::codec
