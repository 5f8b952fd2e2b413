// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.hpp"

#include <cstdio>

#include <unistd.h>

#include "cli/place.hpp"

namespace hfd::cli {
namespace {

constexpr std::uint64_t large_bytes = 64U << 20U;
constexpr std::chrono::milliseconds redraw_every{100};

std::string shown(const std::string& path) {
  std::string out;
  for (const char c : path) {
    out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  }
  return out;
}

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  const base::Lock lock(mutex_);
  if (is_open_) {
    std::fputs("\r\033[K", stderr);
  }
}

void ProgressLine::tell(const std::string& path, const char* doing, std::uint64_t done,
                        std::uint64_t total) {
  const base::Lock lock(mutex_);
  if (!is_terminal_) {
    if (done == 0 && total >= large_bytes) {
      std::fprintf(stderr, "%s %s (%s)\n", doing, shown(path).c_str(), people_bytes(total).c_str());
    }
    return;
  }
  if (base::SteadyClock::now() < next_) {
    return;
  }
  next_ = base::SteadyClock::now() + redraw_every;
  constexpr unsigned percent = 100;
  const auto part =
      total == 0
          ? percent
          : static_cast<unsigned>(static_cast<double>(done) * percent / static_cast<double>(total));
  std::fprintf(stderr, "\r\033[K%s %s %u %% of %s", doing, shown(path).c_str(), part,
               people_bytes(total).c_str());
  std::fflush(stderr);
  is_open_ = true;
}

}  // namespace hfd::cli
