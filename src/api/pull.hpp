// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs pull`: the files of a version written into a folder, whole and checked. Blocking.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hfdeltafs/result.hpp"
#include "hfdeltafs/types.hpp"

namespace hfd::api {

struct PullOptions {
  std::string source;
  std::string folder;
  std::string version = {};  ///< empty: the newest
  std::optional<std::string> base = {};  ///< where the base is, not where the version says
  std::string ref = "main";
  /// Told of each file that is begun. From several threads.
  std::function<void(const std::string&, std::uint64_t)> progress = {};
};

struct PulledFile {
  std::string path;
  std::uint64_t bytes = 0;
  ContentHash sha256;
  bool written = false;  ///< false: it was right already
};

struct Pulled {
  VersionId version;
  std::vector<PulledFile> files;
};

/// Writes every file beside its place, checks its sha256, then renames it: a file is old or new,
/// never a mix. Files that are right already (size and sha256) are left; files of other names stay.
/// Nothing is ever written through a symlink below the folder.
Result<Pulled> pull(const PullOptions& options);

}  // namespace hfd::api
