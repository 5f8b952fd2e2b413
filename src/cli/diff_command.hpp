// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs diff [DIR|URI] A B`: two versions compared tensor by tensor.
#pragma once

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_diff_command(CLI::App& app, Outcome& outcome);

}  // namespace hfd::cli
