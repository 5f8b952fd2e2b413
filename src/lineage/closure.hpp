// SPDX-License-Identifier: Apache-2.0
// Copies from one manifest to the next what is needed to make a content: its entry and, through all
// edges, those of its sources. Used by publish, which keeps each manifest enough by itself. Pure.
#pragma once

#include <map>

#include "lineage/manifest.hpp"

namespace hfd::lineage {

/// Adds `sha256` and everything that it is made of to `into`; entries that are there stay. False
/// when `from` does not know the content.
bool add_closure(const std::map<ContentHash, Content>& from, const ContentHash& sha256,
                 std::map<ContentHash, Content>& into);

}  // namespace hfd::lineage
