// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs verify SOURCE`: is everything that the versions of a bucket need there and whole?
#pragma once

#include "cli/command_line.hpp"


namespace hfd::cli {

void add_verify_command(Command& program);

}  // namespace hfd::cli
