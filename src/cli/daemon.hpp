// SPDX-License-Identifier: Apache-2.0
// The process behind a mount: builds the layers bottom up, mounts, serves, drains, and takes them down
// in the opposite order. Used by the mount command only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/folders.hpp"
#include "cli/sources.hpp"

namespace hfd::cli {

struct DaemonOptions {
  SourceSpec spec;
  std::string source_text;  ///< SOURCE as the user wrote it
  std::string mount_point;  ///< canonical
  LocalFolders folders;
  std::uint64_t cache_bytes_max = 10ULL << 30U;
  bool read_only = false;
  bool sync_on_close = false;
  bool allow_other = false;
  std::chrono::milliseconds quiet{5'000};
  std::chrono::milliseconds poll{10'000};
};

/// What the daemon tells whoever started it, once: the version shown, or why there is no mount.
struct MountAnswer {
  std::string version;  ///< 64 hex, or "none" for an empty bucket
  bool read_only = false;
};
using MountReport = std::function<void(const Result<MountAnswer>&)>;

/// Runs until the mount is gone. `report` is called once, when the mount answers or has failed. Returns the
/// exit code of the process: 6 when data is left in staging.
int run_daemon(const DaemonOptions& options, const MountReport& report);

}  // namespace hfd::cli
