// SPDX-License-Identifier: Apache-2.0
// HFD_CHECK: stops the program when our own reasoning was wrong. Stays on in release builds. Never
// for bad input: that is an Error.
#pragma once

namespace hfd::base {
[[noreturn]] void check_failed(const char* file, int line, const char* condition) noexcept;
}  // namespace hfd::base

#define HFD_CHECK(condition)                                            \
  do {                                                                  \
    if (!(condition)) {                                                 \
      ::hfd::base::check_failed(__FILE__, __LINE__, #condition);        \
    }                                                                   \
  } while (false)
