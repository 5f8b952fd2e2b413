// SPDX-License-Identifier: Apache-2.0
#include "vfs/version_tree.hpp"

#include <algorithm>
#include <utility>

namespace hfd::vfs {

VersionTree::VersionTree(lineage::VersionPtr version) : version_(std::move(version)) {
  nodes_.emplace_back();
  for (const lineage::FileEntry& entry : version_->manifest.files) {
    std::uint32_t at = 0;
    std::string_view rest = entry.path;
    for (std::size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
      at = child_or_new(at, rest.substr(0, slash));
      rest.remove_prefix(slash + 1);
    }
    nodes_[child_or_new(at, rest)].entry = &entry;
  }
}

std::uint32_t VersionTree::child(std::uint32_t folder, std::string_view name) const {
  const std::vector<std::uint32_t>& children = nodes_[folder].children;
  const auto found = std::lower_bound(children.begin(), children.end(), name,
                                      [&](std::uint32_t index, std::string_view key) { return nodes_[index].name < key; });
  return found != children.end() && nodes_[*found].name == name ? *found : 0;
}

std::uint32_t VersionTree::child_or_new(std::uint32_t folder, std::string_view name) {
  if (const std::uint32_t index = child(folder, name); index != 0) {
    return index;
  }
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(Node{std::string(name), folder, nullptr, {}});
  std::vector<std::uint32_t>& children = nodes_[folder].children;
  const auto place = std::lower_bound(children.begin(), children.end(), name,
                                      [&](std::uint32_t other, std::string_view key) { return nodes_[other].name < key; });
  children.insert(place, index);
  return index;
}

}  // namespace hfd::vfs
