// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs delta encode|apply|info`: delta objects as plain files, without a bucket.
#pragma once

#include <string>

#include "hfdeltafs/result.hpp"

namespace hfd::cli {

/// Encodes the file `target` against `base` (a file, or a folder whose files are all sources) into
/// `out`. `out` appears whole or not at all.
Result<void> run_delta_encode(const std::string& base, const std::string& target,
                              const std::string& out);

/// Rebuilds the target of the delta object `delta` into `out`. The sources are looked for in `base`
/// by size and sha256; one that is not there: `corrupt` naming the sha256, and no `out`.
Result<void> run_delta_apply(const std::string& base, const std::string& delta,
                             const std::string& out);

/// The text that `delta info` prints.
Result<std::string> run_delta_info(const std::string& delta, bool json);

}  // namespace hfd::cli
