// SPDX-License-Identifier: Apache-2.0
// model.safetensors.index.json as data: which tensor stands in which shard file. Used to tell
// whether a set of shards is whole, and by `check`. Never opens the shards. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hfdeltafs/result.hpp"

#include "base/bytes.hpp"

namespace hfd::format {

struct ShardIndex {
  std::map<std::string, std::string> file_of_tensor;
  std::vector<std::string> files;  ///< distinct shard names, sorted bytewise
};

/// Parses the index. `corrupt` when it is not JSON, or `weight_map` is missing or not an object of
/// strings. An empty weight_map is fine; other members (metadata) are ignored.
Result<ShardIndex> parse_shard_index(base::ByteView json);

}  // namespace hfd::format
