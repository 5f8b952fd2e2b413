// SPDX-License-Identifier: Apache-2.0
// The `delta` subcommands as the command line sees them; their work is in delta_command.
#pragma once

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_delta_commands(CLI::App& app, Outcome& outcome);

}  // namespace hfd::cli
