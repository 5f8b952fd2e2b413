// SPDX-License-Identifier: Apache-2.0
// Commands that speak to a running mount: status, commit, umount.
#pragma once

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_status_command(CLI::App& app, Outcome& outcome);
void add_commit_command(CLI::App& app, Outcome& outcome);
void add_umount_command(CLI::App& app, Outcome& outcome);

}  // namespace hfd::cli
