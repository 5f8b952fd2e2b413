// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <unistd.h>

#include <atomic>
#include <string>

#include "base/clock.hpp"

namespace hfd::base {
namespace {
std::atomic<LogLevel> level_min{LogLevel::warning};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): the log sink is the one global
std::atomic<int> descriptor_now{2};                  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::info: return "info";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "error";
}
}  // namespace

void set_log_level(LogLevel level) { level_min = level; }
void set_log_descriptor(int descriptor) { descriptor_now = descriptor; }

void log(LogLevel level, std::string_view text) {
  if (level < level_min.load()) {
    return;
  }
  std::string line = to_rfc3339(now_utc() / 1'000'000'000 * 1'000'000'000);
  line += " ";
  line += name_of(level);
  line += " ";
  line += text;
  line += "\n";
  // One write per line keeps lines of several threads whole; there is nobody to tell if it fails.
  [[maybe_unused]] const auto written = ::write(descriptor_now.load(), line.data(), line.size());
}

}  // namespace hfd::base
