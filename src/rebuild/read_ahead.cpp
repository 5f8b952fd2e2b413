// SPDX-License-Identifier: Apache-2.0
#include "rebuild/read_ahead.hpp"

#include <algorithm>
#include <iterator>

namespace hfd::rebuild {

ByteRange ReadAhead::note(const ContentHash& content, ByteRange request, std::uint64_t content_bytes) {
  const base::Lock lock(mutex_);
  auto found = index_.find(content);
  if (found == index_.end()) {
    runs_.push_front(Run{content, 0, 0, 0});
    found = index_.emplace(content, runs_.begin()).first;
    if (runs_.size() > content_count_max) {
      index_.erase(runs_.back().content);
      runs_.pop_back();
    }
  } else {
    runs_.splice(runs_.begin(), runs_, found->second);
  }
  Run& run = *found->second;
  const bool reads_on = request.offset + jump_back_bytes_max >= run.end &&
                        request.offset <= run.end + jump_ahead_bytes_max;
  if (!reads_on) {
    run = Run{content, request.end(), request.size, request.end()};
    return {};
  }
  run.bytes += request.size;
  run.end = std::max(run.end, request.end());
  if (run.bytes < run_bytes_min) {
    return {};
  }
  const std::uint64_t window = std::min(run.bytes, window_bytes_max_);
  const std::uint64_t from = std::max(run.ahead_end, run.end);
  const std::uint64_t until = std::min(content_bytes, run.end + window);
  // Half a window at a time: small steps would make many small requests.
  if (from >= until || (until - from < window / 2 && until != content_bytes)) {
    return {};
  }
  run.ahead_end = until;
  return {from, until - from};
}

}  // namespace hfd::rebuild
