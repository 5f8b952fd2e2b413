// SPDX-License-Identifier: Apache-2.0
// The log: levelled lines to stderr or a file. The one global of the program. Each line has a UTC
// time and a level. Never given secrets.
#pragma once

#include <string_view>

namespace hfd::base {

enum class LogLevel { debug, info, warning, error };

/// Lines below `level` are dropped. Default: warning. Thread-safe.
void set_log_level(LogLevel level);
/// Appends lines to an open descriptor from now on (default 2). The caller keeps it open.
void set_log_descriptor(int descriptor);
void log(LogLevel level, std::string_view text);

}  // namespace hfd::base
