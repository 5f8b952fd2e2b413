// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs publish`: the files of a folder become the next version of a ref. Blocking.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "publish/publisher.hpp"

namespace hfd::api {

struct PublishFolderOptions {
  std::string folder;
  std::string uri;  ///< the bucket; a folder that is missing or empty becomes one
  std::optional<std::string> base = {};  ///< first publish: SOURCE of the base; later: where it is
  std::string ref = "main";
  std::string message = {};
  std::function<void(const std::string&, const char*, std::uint64_t, std::uint64_t)> progress = {};
};

struct PublishedFolder {
  publish::PublishOutcome outcome;
  std::vector<publish::IncompleteFile> incomplete;  ///< published all the same
  std::vector<publish::IncompleteFile> stale;
  std::vector<std::string> junk;     ///< temporary names, left out
  std::vector<std::string> skipped;  ///< what no version can hold
};

/// Always makes a version, also when nothing changed (an idle training step is one). Starts again
/// on top of another writer's version when that was first; what is uploaded is not sent twice.
Result<PublishedFolder> publish_folder(const PublishFolderOptions& options);

}  // namespace hfd::api
