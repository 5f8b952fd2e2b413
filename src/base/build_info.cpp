// SPDX-License-Identifier: Apache-2.0
#include "hfdeltafs/build_info.hpp"

namespace hfd {

const char* program_version() { return HFD_VERSION; }

}  // namespace hfd
