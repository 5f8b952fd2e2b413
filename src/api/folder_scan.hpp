// SPDX-License-Identifier: Apache-2.0
// A folder of this machine as the files of a version to be published. Part of api (publish_folder).
#pragma once

#include <string>
#include <vector>

#include "publish/publisher.hpp"

namespace hfd::api {

struct FolderScan {
  std::vector<publish::PublishFile> files;
  std::vector<std::string> junk;  ///< temporary names, left out
  std::vector<std::string>
      skipped;  ///< what no version can hold: sockets, symlinks that lead nowhere
};

/// Symlinks that stay inside the folder are kept as such; those that lead out are published as the
/// files they lead to (a Hugging Face cache is made of them). Hidden files are files like others;
/// `.hfdelta` is not.
Result<FolderScan> scan_folder(const std::string& folder);

}  // namespace hfd::api
