// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs tag [DIR|URI] NAME [VERSION]`: names for versions.
#pragma once

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_tag_command(Command& program);

}  // namespace hfd::cli
