// SPDX-License-Identifier: Apache-2.0
// Progress of long work on stderr: one line that is written over on a terminal; elsewhere a plain
// line for each large file. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace hfd::cli {

class ProgressLine {
 public:
  ProgressLine();
  /// Ends the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void tell(const std::string& path, const char* doing, std::uint64_t done, std::uint64_t total);

 private:
  base::Mutex mutex_;
  const bool is_terminal_;
  bool is_open_ HFD_GUARDED_BY(mutex_) = false;
  base::SteadyClock::time_point next_ HFD_GUARDED_BY(mutex_);
};

}  // namespace hfd::cli
