// SPDX-License-Identifier: Apache-2.0
#include "format/shard_index.hpp"

#include <set>

#include "base/json.hpp"

namespace hfd::format {

Result<ShardIndex> parse_shard_index(base::ByteView json) {
  HFD_TRY(const base::Json document, base::parse_json(json));
  HFD_TRY(const base::Json* weight_map, document.member("weight_map"));
  const base::Json::Object* members = weight_map->as_object();
  if (members == nullptr) {
    return Error{ErrorCode::corrupt, "weight_map is not an object"};
  }
  ShardIndex index;
  std::set<std::string> files;
  for (const auto& [tensor, file] : *members) {
    const std::string* name = file.as_string();
    if (name == nullptr) {
      return Error{ErrorCode::corrupt, "weight_map names no file for a tensor",
                   tensor.substr(0, 200)};
    }
    index.file_of_tensor.emplace(tensor, *name);
    files.insert(*name);
  }
  index.files.assign(files.begin(), files.end());
  return index;
}

}  // namespace hfd::format
