// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs tag [DIR|URI] NAME [VERSION]`: names for versions.
#pragma once

#include "cli/outcome.hpp"

namespace CLI {
class App;
}

namespace hfd::cli {

void add_tag_command(CLI::App& app, Outcome& outcome);

}  // namespace hfd::cli
