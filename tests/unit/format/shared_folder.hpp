// SPDX-License-Identifier: Apache-2.0
// Where the shared test material is: env HFD_SHARED, else ../shared beside the source tree. Tests
// that need it print SKIP with the reason when it is not there. Used by unit tests only.
#pragma once

#include <cstdlib>
#include <string>

namespace hfd::test {

inline std::string shared_folder() {
  // NOLINTBEGIN(concurrency-mt-unsafe): nobody changes the environment of the tests
  if (const char* named = std::getenv("HFD_SHARED"); named != nullptr) {
    return named;
  }
  const char* root = std::getenv("HFD_TEST_SOURCE_ROOT");
  // NOLINTEND(concurrency-mt-unsafe)
  return std::string(root != nullptr ? root : ".") + "/../shared";
}

}  // namespace hfd::test
