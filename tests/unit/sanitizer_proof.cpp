// SPDX-License-Identifier: Apache-2.0
// Makes one fault on purpose, named by its argument. sanitizer_proof.py expects the sanitizer to say so.
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>

namespace {

int read_past_the_end(std::size_t at) {
  const auto bytes = std::make_unique<int[]>(4);
  return bytes[at];
}

int add_one(int value) { return value + 1; }

int race() {
  int counter = 0;
  const auto count = [&counter] {
    for (int i = 0; i < 100000; ++i) {
      ++counter;
    }
  };
  std::thread first(count);
  std::thread second(count);
  first.join();
  second.join();
  return counter;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view fault = argc > 1 ? argv[1] : "";
  int value = 0;
  if (fault == "heap") {
    value = read_past_the_end(3 + static_cast<std::size_t>(argc) - 1);
  } else if (fault == "overflow") {
    value = add_one(std::numeric_limits<int>::max() - 2 + argc);
  } else if (fault == "race") {
    value = race();
  }
  std::printf("no sanitizer stopped me: %d\n", value);
  return 0;
}
