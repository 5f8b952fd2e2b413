// SPDX-License-Identifier: Apache-2.0
// Time. A deadline is a steady_clock point; times that people and manifests see are UTC nanoseconds
// since 1970 written as RFC 3339.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "hfdeltafs/result.hpp"

namespace hfd::base {

using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;

inline Deadline deadline_in(std::chrono::milliseconds duration) { return SteadyClock::now() + duration; }

/// Nanoseconds since 1970 UTC; negative before.
using UnixNanoseconds = std::int64_t;
UnixNanoseconds now_utc();

/// `2026-12-01T11:46:15Z`, with nine decimals when `nanoseconds` is not a whole second.
std::string to_rfc3339(UnixNanoseconds time);
/// The inverse; accepts 0 to 9 decimals and `Z` only. `corrupt` otherwise.
Result<UnixNanoseconds> from_rfc3339(std::string_view text);

}  // namespace hfd::base
