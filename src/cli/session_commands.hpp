// SPDX-License-Identifier: Apache-2.0
// Commands that speak to a running mount: status, commit, umount.
#pragma once

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_status_command(Command& program);
void add_commit_command(Command& program);
void add_umount_command(Command& program);

}  // namespace hfd::cli
