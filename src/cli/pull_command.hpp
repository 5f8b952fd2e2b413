// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs pull SOURCE FOLDER`: a version written out as full files.
#pragma once

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_pull_command(Command& program);

}  // namespace hfd::cli
