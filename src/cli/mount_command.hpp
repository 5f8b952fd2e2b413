// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs mount`, and mount.hfdeltafs for fstab: options, the fork into the background, the one line.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_mount_command(Command& program);

/// mount(8)'s way of calling: `mount.hfdeltafs SOURCE DIR [-sfnv] [-o OPTIONS]`. Returns the exit code.
int run_mount_helper(const std::vector<std::string>& arguments);

}  // namespace hfd::cli
