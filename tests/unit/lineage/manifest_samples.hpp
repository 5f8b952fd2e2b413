// SPDX-License-Identifier: Apache-2.0
// A manifest that uses every part of the layout. Used by unit tests only.
#pragma once

#include <string>

#include "base/hash.hpp"
#include "lineage/manifest.hpp"

namespace hfd::test {

inline ContentHash content_of(const std::string& text) {
  return base::content_hash(base::as_bytes(text));
}
inline ObjectId object_named(const std::string& text) {
  return base::object_id(base::as_bytes(text));
}

inline lineage::FileEntry manifest_file(const std::string& path, const std::string& content) {
  lineage::FileEntry file;
  file.path = path;
  file.bytes = content.size();
  file.sha256 = content_of(content);
  return file;
}

inline lineage::BlobEdge blob_edge(const ObjectId& object, std::uint64_t bytes,
                                   lineage::BlobEdge::Encoding encoding) {
  lineage::BlobEdge blob;
  blob.object = object;
  blob.object_bytes = bytes;
  blob.encoding = encoding;
  return blob;
}
inline lineage::BlobEdge identity_edge(const std::string& content) {
  return blob_edge({content_of(content).bytes}, content.size(),
                   lineage::BlobEdge::Encoding::identity);
}

inline lineage::Content upstream_content(const std::string& content, const std::string& path) {
  return {content_of(content), content.size(), {lineage::UpstreamEdge{"file:///base", path}}};
}

inline lineage::Manifest sample_manifest() {
  using lineage::BlobEdge;
  using lineage::FileEntry;
  lineage::Manifest manifest;
  manifest.parent = base::version_id(base::as_bytes("parent"));
  manifest.sequence = 7;
  manifest.ref = "main";
  manifest.time = 1'764'590'775'000'000'001;
  manifest.message = "step 7 \"quoted\" \xC3\xBC";
  manifest.base = lineage::BaseInfo{"file:///base", ""};
  manifest.stats = {100, 20, 3, 40};
  manifest.files = {manifest_file("a.json", "one"), manifest_file("b.safetensors", "target"),
                    manifest_file("bad\xFFname", "three"), manifest_file("c.safetensors", "anchor")};
  manifest.files[0].executable = true;
  manifest.files[0].mtime = 1'700'000'000'000'000'000;
  manifest.files[1].mtime = -1;
  FileEntry link;
  link.path = "d/link";
  link.kind = FileEntry::Kind::symlink;
  link.symlink_target = "../a.json";
  FileEntry folder;
  folder.path = "empty";
  folder.kind = FileEntry::Kind::folder;
  manifest.files.push_back(link);
  manifest.files.push_back(folder);
  const auto add = [&](lineage::Content content) {
    manifest.contents.emplace(content.sha256, std::move(content));
  };
  add({content_of("one"), 3, {identity_edge("one")}});
  add({content_of("three"), 5, {blob_edge(object_named("z"), 4, BlobEdge::Encoding::zstd)}});
  add({content_of("anchor"),
       6,
       {BlobEdge{.object = object_named("h"),
                 .object_bytes = 900,
                 .encoding = BlobEdge::Encoding::hfd,
                 .directory = {800, 100},
                 .directory_sha256 = content_of("dir")}}});
  add({content_of("target"),
       6,
       {lineage::DeltaEdge{.object = object_named("d"),
                           .object_bytes = 500,
                           .directory = {400, 100},
                           .directory_sha256 = content_of("dir2"),
                           .sources = {content_of("source"), content_of("anchor")}},
        lineage::UpstreamEdge{"file:///base", "b\xFE/x"}}});
  add(upstream_content("source", "b.safetensors"));
  return manifest;
}

}  // namespace hfd::test
