// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs log [DIR|URI]`: the versions of a ref, newest first.
#pragma once

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_log_command(Command& program);

}  // namespace hfd::cli
