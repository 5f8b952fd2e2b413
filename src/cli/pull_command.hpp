// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs pull SOURCE FOLDER`: a version written out as full files.
#pragma once

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_pull_command(CLI::App& app, Outcome& outcome);

}  // namespace hfd::cli
