// SPDX-License-Identifier: Apache-2.0
// Which strings may name an object on a remote. Checked by every remote before a name becomes a
// path or a URL, so that a hostile manifest cannot reach outside its root. Pure.
#pragma once

#include <string_view>

#include "hfdeltafs/result.hpp"

namespace hfd::remote {

/// invalid_argument unless `name` is relative, with no empty, "." or ".." segment and no NUL.
Result<void> check_object_name(std::string_view name);

}  // namespace hfd::remote
