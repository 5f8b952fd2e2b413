// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs publish FOLDER URI`: the files of a folder become the next version, without a mount.
#pragma once

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_publish_command(CLI::App& app, Outcome& outcome);

}  // namespace hfd::cli
