// SPDX-License-Identifier: Apache-2.0
// The write side of the library: a folder becomes the next version of a bucket. Blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hfdeltafs/result.hpp"
#include "hfdeltafs/types.hpp"

namespace hfd {

struct PublishOptions {
  std::string folder;     ///< all of its files are the version, but for temporary names (README)
  std::string bucket;     ///< path or URI; made when it is not there
  std::string base = {};  ///< the base model, for the first publish
  std::string ref = "main";
  std::string message = {};
};

struct PublishReceipt {
  VersionId version;
  std::optional<VersionId> parent;
  std::uint64_t sequence = 0;
  std::uint64_t files = 0;
  std::uint64_t full_bytes = 0;    ///< of all files
  std::uint64_t stored_bytes = 0;  ///< delta and blob objects that were written
  std::uint64_t meta_bytes = 0;    ///< manifest, claims, hints
  /// What a user should know: incomplete sets (published all the same), names left out.
  std::vector<std::string> warnings;
};

/// Always makes a version, also when nothing changed. On another writer's version it starts again.
Result<PublishReceipt> publish_folder(const PublishOptions& options);

}  // namespace hfd
