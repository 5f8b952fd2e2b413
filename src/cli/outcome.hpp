// SPDX-License-Identifier: Apache-2.0
// How a subcommand hands itself to main: parsing (CLI11) fills in `run`, main calls it. Keeps CLI11
// out of the commands' logic.
#pragma once

#include <functional>

namespace hfd::cli {

struct Outcome {
  /// Runs the chosen command and returns the exit code of the program.
  std::function<int()> run;
};

}  // namespace hfd::cli
