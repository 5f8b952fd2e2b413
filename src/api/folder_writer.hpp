// SPDX-License-Identifier: Apache-2.0
// Writes entries of a version into a folder without ever following a symlink below it: each segment
// of a path is opened by itself with O_NOFOLLOW. Part of api (pull). Thread-safe: one call does not
// disturb another of a different path.
#pragma once

#include <functional>
#include <string>

#include "base/file.hpp"
#include "lineage/manifest.hpp"

namespace hfd::api {

class FolderWriter {
 public:
  /// Makes the folder when it is missing; it may itself be a symlink.
  static Result<FolderWriter> open(const std::string& folder);

  /// True when a regular file of this size and sha256 is there; its mtime and mode are set right
  /// then.
  Result<bool> is_right(const lineage::FileEntry& file) const;
  /// Makes a new file: `fill` gives the bytes, in order; size and sha256 must come out as the entry
  /// says, else `corrupt` and nothing is changed. Durable before it takes its name.
  Result<void> write_file(const lineage::FileEntry& file,
                          const std::function<Result<void>(const base::ByteSink&)>& fill) const;
  Result<void> write_symlink(const lineage::FileEntry& link) const;
  Result<void> make_folder(const lineage::FileEntry& folder) const;

 private:
  FolderWriter(std::string folder, base::Fd root)
      : folder_(std::move(folder)), root_(std::move(root)) {}
  /// Opens the folder that holds `path`, making it when missing, and gives the last segment.
  Result<base::Fd> open_parent(const std::string& path, std::string& name) const;
  /// A child folder of `parent`; `shown` names it in errors.
  static Result<base::Fd> enter(const base::Fd& parent, const std::string& name,
                                const std::string& shown);

  std::string folder_;
  base::Fd root_;
};

}  // namespace hfd::api
