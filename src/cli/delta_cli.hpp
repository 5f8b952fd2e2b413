// SPDX-License-Identifier: Apache-2.0
// The `delta` subcommands as the command line sees them; their work is in delta_command.
#pragma once

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_delta_commands(Command& program);

}  // namespace hfd::cli
