// SPDX-License-Identifier: Apache-2.0
#include "lineage/closure.hpp"

#include <vector>

#include "lineage/manifest_edges.hpp"

namespace hfd::lineage {

bool add_closure(const std::map<ContentHash, Content>& from, const ContentHash& sha256,
                 std::map<ContentHash, Content>& into) {
  if (from.count(sha256) == 0) {
    return false;
  }
  std::vector<ContentHash> open{sha256};
  while (!open.empty()) {
    const ContentHash next = open.back();
    open.pop_back();
    const auto found = from.find(next);  // sources are there: parse_manifest checked it
    if (found == from.end() || !into.emplace(next, found->second).second) {
      continue;
    }
    for (const Edge& edge : found->second.edges) {
      const std::vector<ContentHash>& sources = sources_of(edge);
      open.insert(open.end(), sources.begin(), sources.end());
    }
  }
  return true;
}

}  // namespace hfd::lineage
