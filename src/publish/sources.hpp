// SPDX-License-Identifier: Apache-2.0
// What a publish can build on: the contents of the parent and of the base, as sources for the
// encoder and as content that needs no new object. Part of publish. Used by one publish; open
// readers are shared by its encodes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codec/delta_writer.hpp"
#include "publish/publisher.hpp"

namespace hfd::publish {

class SourceSet {
 public:
  /// `open_content` must outlive this object.
  SourceSet(const PublishRequest& request, const ContentOpener& open_content);

  /// Sources for a target, best first: the same path in the parent (else in the base), then all
  /// safetensors files of the parent, then those of the base. A target that is not safetensors has
  /// the first only.
  std::vector<codec::SourceFile> for_target(const std::string& path);

  bool knows(const ContentHash& sha256) const;
  /// False: no known content has this size, so there is no need to hash a file to look for it.
  bool knows_size(std::uint64_t bytes) const { return sizes_.count(bytes) != 0; }
  /// Copies the entries that make the content into a new manifest. False when it is not known.
  bool add_to(const ContentHash& sha256, std::map<ContentHash, lineage::Content>& contents) const;
  /// Size of a known content. Precondition: knows(sha256).
  std::uint64_t bytes_of(const ContentHash& sha256) const;

 private:
  const lineage::Version* version_of(const ContentHash& sha256) const;
  void add(const lineage::FileEntry& file, std::unordered_set<ContentHash>& taken,
           std::vector<codec::SourceFile>& sources);

  const ContentOpener& open_content_;
  std::vector<lineage::VersionPtr> versions_;  ///< parent, then base
  std::set<std::uint64_t> sizes_;
  std::unordered_map<ContentHash, std::unique_ptr<base::ReadableBytes>> readers_;
};

/// True for names that the encoder matches tensor by tensor.
bool is_safetensors_name(const std::string& path);

}  // namespace hfd::publish
