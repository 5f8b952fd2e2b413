// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs verify SOURCE`: is everything that the versions of a bucket need there and whole?
#pragma once

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_verify_command(CLI::App& app, Outcome& outcome);

}  // namespace hfd::cli
