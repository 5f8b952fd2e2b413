// SPDX-License-Identifier: Apache-2.0
// The "contents" part of a manifest, and what its two source files share. Part of lineage.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "lineage/manifest.hpp"

namespace hfd::lineage {

/// Largest number of a version: ten digits in the name of a claim.
inline constexpr std::uint64_t sequence_max = 9'999'999'999;

Error corrupt_manifest(std::string_view why);

/// Sets `key` to a byte string, or `key`_b64 to its base64 when it is not UTF-8.
void set_bytes(base::Json& object, const std::string& key, const std::string& bytes);
Result<std::string> get_bytes(const base::Json& object, const std::string& key);

template <class Hash>
Result<Hash> get_hash(const base::Json& object, std::string_view key) {
  HFD_TRY(const std::string text, object.string_member(key));
  return Hash::from_hex(text);
}

/// The contents that an edge is applied to; none but for a delta.
const std::vector<ContentHash>& sources_of(const Edge& edge);

base::Json contents_json(const std::map<ContentHash, Content>& contents);
/// Parses and checks each by itself and all together: sources are there, and nothing is made of
/// itself.
Result<std::map<ContentHash, Content>> parse_contents(const base::Json& root);

}  // namespace hfd::lineage
