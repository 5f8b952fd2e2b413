// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace hfd::base {

void check_failed(const char* file, int line, const char* condition) noexcept {
  std::fprintf(stderr, "hfdeltafs: a check of our own failed: %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace hfd::base
