// SPDX-License-Identifier: Apache-2.0
// Where a mount keeps its local things, by the XDG rules (interface.md, "Commands").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hfdeltafs/result.hpp"

namespace hfd::cli {

struct LocalFolders {
  std::string cache;    ///< may be shared by daemons
  std::string staging;  ///< one daemon's own
};

/// With `cache_dir` D: D/cache and D/staging. Else $XDG_CACHE_HOME/hfdeltafs and
/// $XDG_STATE_HOME/hfdeltafs/<mount>, where <mount> is the mount point's path with "/" as "-" and a hash.
LocalFolders local_folders(const std::string& cache_dir, const std::string& mount_point);

/// "10G", "256M", "64K", "1.5T" or plain bytes; powers of 1024. invalid_argument otherwise.
Result<std::uint64_t> parse_size(std::string_view text);
/// Seconds, with decimals: "5", "0.5".
Result<std::uint64_t> parse_seconds_ms(std::string_view text);

/// realpath(3); not_found when it is not there. Works on a dead mount point too (its parent is resolved).
Result<std::string> canonical_folder(const std::string& path);

}  // namespace hfd::cli
