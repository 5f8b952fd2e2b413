// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs diff [DIR|URI] A B`: two versions compared tensor by tensor.
#pragma once

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_diff_command(Command& program);

}  // namespace hfd::cli
