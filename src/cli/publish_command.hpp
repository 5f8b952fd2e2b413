// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs publish FOLDER URI`: the files of a folder become the next version, without a mount.
#pragma once

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_publish_command(Command& program);

}  // namespace hfd::cli
