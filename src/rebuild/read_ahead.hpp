// SPDX-License-Identifier: Apache-2.0
// Decides how far ahead of a reader to rebuild: nothing for the first touch or for random reads, a
// window that doubles for sequential ones. Per content, not per descriptor (loaders open a file
// twice), and tolerant of requests that arrive out of order, as they do over several kernel threads.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "base/mutex.hpp"
#include "hfdeltafs/types.hpp"

namespace hfd::rebuild {

class ReadAhead {
 public:
  explicit ReadAhead(std::uint64_t window_bytes_max) : window_bytes_max_(window_bytes_max) {}

  /// Notes a request; returns what to rebuild beyond it (size 0: nothing). `content_bytes` bounds it.
  ByteRange note(const ContentHash& content, ByteRange request, std::uint64_t content_bytes);

 private:
  /// A reader that starts this close before or after the end of the last request still reads on.
  static constexpr std::uint64_t jump_back_bytes_max = 1ULL << 20U;
  static constexpr std::uint64_t jump_ahead_bytes_max = 4ULL << 20U;
  /// Sequential bytes before anything is read ahead: a look at a header stays cheap.
  static constexpr std::uint64_t run_bytes_min = 512ULL << 10U;
  /// Contents remembered; older ones start anew.
  static constexpr std::size_t content_count_max = 256;

  struct Run {
    ContentHash content;
    std::uint64_t end = 0;       ///< furthest byte asked for
    std::uint64_t bytes = 0;     ///< asked for in this run
    std::uint64_t ahead_end = 0; ///< furthest byte already read ahead
  };
  using Runs = std::list<Run>;

  const std::uint64_t window_bytes_max_;
  base::Mutex mutex_;
  Runs runs_ HFD_GUARDED_BY(mutex_);  ///< most recently used first
  std::unordered_map<ContentHash, Runs::iterator> index_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::rebuild
