// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs mount`, and mount.hfdeltafs for fstab: options, the fork into the background, the one line.
#pragma once

#include <string>
#include <vector>

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_mount_command(CLI::App& app, Outcome& outcome);

/// mount(8)'s way of calling: `mount.hfdeltafs SOURCE DIR [-sfnv] [-o OPTIONS]`. Returns the exit code.
int run_mount_helper(const std::vector<std::string>& arguments);

}  // namespace hfd::cli
