// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs log [DIR|URI]`: the versions of a ref, newest first.
#pragma once

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_log_command(CLI::App& app, Outcome& outcome);

}  // namespace hfd::cli
