// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace hfd::base {
namespace {
constexpr UnixNanoseconds second = 1'000'000'000;
constexpr UnixNanoseconds year_max = 9999;

/// Reads `digits` decimal digits at `at`; -1 when there are none.
UnixNanoseconds number_at(std::string_view text, std::size_t at, std::size_t digits) {
  UnixNanoseconds value = 0;
  for (std::size_t i = at; i < at + digits; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') {
      return -1;
    }
    value = value * 10 + (text[i] - '0');
  }
  return value;
}
}  // namespace

UnixNanoseconds now_utc() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string to_rfc3339(UnixNanoseconds time) {
  UnixNanoseconds seconds = time / second;
  UnixNanoseconds fraction = time % second;
  if (fraction < 0) {
    fraction += second;
    --seconds;
  }
  const std::time_t whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  std::array<char, 64> text{};
  std::size_t used = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string out(text.data(), used);
  if (fraction != 0) {
    std::snprintf(text.data(), text.size(), ".%09lld", static_cast<long long>(fraction));
    out += text.data();
  }
  return out + "Z";
}

Result<UnixNanoseconds> from_rfc3339(std::string_view text) {
  const Error bad{ErrorCode::corrupt, "not a UTC time of RFC 3339", std::string(text.substr(0, 64))};
  const UnixNanoseconds year = number_at(text, 0, 4);
  const UnixNanoseconds month = number_at(text, 5, 2);
  const UnixNanoseconds day = number_at(text, 8, 2);
  const UnixNanoseconds hour = number_at(text, 11, 2);
  const UnixNanoseconds minute = number_at(text, 14, 2);
  const UnixNanoseconds seconds = number_at(text, 17, 2);
  const bool marks = text.size() >= 20 && text[4] == '-' && text[7] == '-' && text[10] == 'T' && text[13] == ':' &&
                     text[16] == ':' && text.back() == 'Z';
  const bool ranges = year >= 0 && year <= year_max && month >= 1 && month <= 12 && day >= 1 && day <= 31 &&
                      hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 && seconds >= 0 && seconds <= 60;
  if (!marks || !ranges) {
    return bad;
  }
  UnixNanoseconds fraction = 0;
  if (text.size() > 20) {
    const std::size_t digits = text.size() - 21;
    if (text[19] != '.' || digits < 1 || digits > 9) {
      return bad;  // before reading them: more digits would not fit the number
    }
    fraction = number_at(text, 20, digits);
    if (fraction < 0) {
      return bad;
    }
    for (std::size_t i = digits; i < 9; ++i) {
      fraction *= 10;
    }
  }
  std::tm parts{};
  parts.tm_year = static_cast<int>(year - 1900);
  parts.tm_mon = static_cast<int>(month - 1);
  parts.tm_mday = static_cast<int>(day);
  parts.tm_hour = static_cast<int>(hour);
  parts.tm_min = static_cast<int>(minute);
  parts.tm_sec = static_cast<int>(seconds);
  constexpr std::int64_t years_around_1970 = 290;  // what 64 bits of nanoseconds hold
  if (year < 1970 - years_around_1970 || year > 1970 + years_around_1970) {
    return bad;
  }
  return static_cast<UnixNanoseconds>(timegm(&parts)) * second + fraction;
}

}  // namespace hfd::base
