// SPDX-License-Identifier: Apache-2.0
#include "lineage/manifest_edges.hpp"

#include <algorithm>
#include <unordered_map>

namespace hfd::lineage {
namespace {

using base::Json;

/// A handful of ways to make a content is plenty; more only cost memory.
constexpr std::size_t edge_count_max = 64;
/// All shards of a parent and of a base.
constexpr std::size_t source_count_max = 65'536;
/// A directory and a frame are read whole: they must fit in memory beside everything else.
constexpr std::uint64_t directory_bytes_max = 64U << 20U;
constexpr std::uint64_t frame_content_bytes_max = 16U << 20U;
constexpr std::uint64_t uri_bytes_max = 8192;
/// Offsets in files are signed 64-bit numbers.
constexpr std::uint64_t content_bytes_max = std::uint64_t{1} << 62U;

const char* encoding_name(BlobEdge::Encoding encoding) {
  switch (encoding) {
    case BlobEdge::Encoding::identity: return "identity";
    case BlobEdge::Encoding::zstd: return "zstd";
    case BlobEdge::Encoding::hfd: return "hfd";
  }
  return "identity";
}

void set_directory(Json& out, ByteRange directory, const ContentHash& sha256) {
  out.set("directory", Json::array().push(directory.offset).push(directory.size));
  out.set("directory_sha256", sha256.hex());
}

Json edge_json(const Edge& edge) {
  Json out = Json::object();
  if (const auto* blob = std::get_if<BlobEdge>(&edge)) {
    out.set("kind", "blob").set("object", blob->object.hex()).set("bytes", blob->object_bytes);
    out.set("encoding", encoding_name(blob->encoding));
    if (blob->encoding == BlobEdge::Encoding::hfd) {
      set_directory(out, blob->directory, blob->directory_sha256);
    }
  } else if (const auto* delta = std::get_if<DeltaEdge>(&edge)) {
    out.set("kind", "delta").set("object", delta->object.hex()).set("bytes", delta->object_bytes);
    set_directory(out, delta->directory, delta->directory_sha256);
    Json sources = Json::array();
    for (const ContentHash& source : delta->sources) {
      sources.push(source.hex());
    }
    out.set("sources", std::move(sources));
  } else if (const auto* upstream = std::get_if<UpstreamEdge>(&edge)) {
    out.set("kind", "upstream").set("uri", upstream->uri);
    set_bytes(out, "path", upstream->path);
  }
  return out;
}

Result<ByteRange> get_directory(const Json& json, std::uint64_t object_bytes) {
  HFD_TRY(const Json* pair, json.member("directory"));
  if (!pair->is_array() || pair->as_array()->size() != 2) {
    return corrupt_manifest("a directory is not given as [offset, size]");
  }
  ByteRange range;
  HFD_TRY(range.offset, (*pair->as_array())[0].as_unsigned());
  HFD_TRY(range.size, (*pair->as_array())[1].as_unsigned());
  if (range.size == 0 || range.size > directory_bytes_max || !range.within(object_bytes)) {
    return corrupt_manifest("a directory does not lie within its object");
  }
  return range;
}

Result<Edge> parse_blob(const Json& json, const Content& content) {
  BlobEdge blob;
  HFD_TRY(blob.object, get_hash<ObjectId>(json, "object"));
  HFD_TRY(blob.object_bytes, json.unsigned_member("bytes"));
  if (blob.object_bytes > content_bytes_max) {
    return corrupt_manifest("an object is larger than any file can be");
  }
  HFD_TRY(const std::string encoding, json.string_member("encoding"));
  if (encoding == "identity") {
    if (blob.object_bytes != content.bytes || blob.object.bytes != content.sha256.bytes) {
      return corrupt_manifest("a literal blob is not the content it stands for");
    }
  } else if (encoding == "zstd") {
    blob.encoding = BlobEdge::Encoding::zstd;
    if (content.bytes > frame_content_bytes_max || blob.object_bytes > frame_content_bytes_max) {
      return corrupt_manifest("a zstd blob is too large to be read whole");
    }
  } else if (encoding == "hfd") {
    blob.encoding = BlobEdge::Encoding::hfd;
    HFD_TRY(blob.directory, get_directory(json, blob.object_bytes));
    HFD_TRY(blob.directory_sha256, get_hash<ContentHash>(json, "directory_sha256"));
  } else {
    return corrupt_manifest("a blob has an encoding that does not exist");
  }
  return Edge(blob);
}

Result<Edge> parse_delta(const Json& json) {
  DeltaEdge delta;
  HFD_TRY(delta.object, get_hash<ObjectId>(json, "object"));
  HFD_TRY(delta.object_bytes, json.unsigned_member("bytes"));
  if (delta.object_bytes > content_bytes_max) {
    return corrupt_manifest("an object is larger than any file can be");
  }
  HFD_TRY(delta.directory, get_directory(json, delta.object_bytes));
  HFD_TRY(delta.directory_sha256, get_hash<ContentHash>(json, "directory_sha256"));
  HFD_TRY(const Json* sources, json.member("sources"));
  if (!sources->is_array() || sources->as_array()->empty() ||
      sources->as_array()->size() > source_count_max) {
    return corrupt_manifest("a delta has no sources, or too many");
  }
  for (const Json& source : *sources->as_array()) {
    if (source.as_string() == nullptr) {
      return corrupt_manifest("a source is not a sha256");
    }
    HFD_TRY(const ContentHash hash, ContentHash::from_hex(*source.as_string()));
    delta.sources.push_back(hash);
  }
  return Edge(std::move(delta));
}

Result<Edge> parse_edge(const Json& json, const Content& content) {
  HFD_TRY(const std::string kind, json.string_member("kind"));
  if (kind == "blob") {
    return parse_blob(json, content);
  }
  if (kind == "delta") {
    return parse_delta(json);
  }
  if (kind == "upstream") {
    UpstreamEdge upstream;
    HFD_TRY(upstream.uri, json.string_member("uri"));
    HFD_TRY(upstream.path, get_bytes(json, "path"));
    if (upstream.uri.empty() || upstream.uri.size() > uri_bytes_max ||
        !is_valid_path(upstream.path)) {
      return corrupt_manifest("a file of the base has a URI or path that is not allowed");
    }
    return Edge(std::move(upstream));
  }
  return corrupt_manifest("an edge is of a kind that does not exist");
}

Result<Content> parse_content(const ContentHash& sha256, const Json& json) {
  Content content;
  content.sha256 = sha256;
  HFD_TRY(content.bytes, json.unsigned_member("bytes"));
  if (content.bytes > content_bytes_max) {
    return corrupt_manifest("a content is larger than any file can be");
  }
  HFD_TRY(const Json* edges, json.member("edges"));
  if (!edges->is_array() || edges->as_array()->empty() ||
      edges->as_array()->size() > edge_count_max) {
    return corrupt_manifest("a content has no edges, or too many");
  }
  for (const Json& edge : *edges->as_array()) {
    HFD_TRY(Edge parsed, parse_edge(edge, content));
    content.edges.push_back(std::move(parsed));
  }
  return content;
}

/// Every source is listed, and following sources always ends (Kahn's algorithm: take away contents
/// that nothing left is made for; what remains in the end is a cycle). All edges count, so that a
/// reader may choose any of them.
Result<void> check_sources(const std::map<ContentHash, Content>& contents) {
  std::unordered_map<ContentHash, std::size_t> uses;
  for (const auto& [sha256, content] : contents) {
    for (const Edge& edge : content.edges) {
      for (const ContentHash& source : sources_of(edge)) {
        if (contents.count(source) == 0) {
          return corrupt_manifest("a delta needs a content that is not listed").on(source.hex());
        }
        ++uses[source];
      }
    }
  }
  std::vector<const Content*> free;
  for (const auto& [sha256, content] : contents) {
    if (uses.count(sha256) == 0) {
      free.push_back(&content);
    }
  }
  std::size_t taken = 0;
  while (!free.empty()) {
    const Content* content = free.back();
    free.pop_back();
    ++taken;
    for (const Edge& edge : content->edges) {
      for (const ContentHash& source : sources_of(edge)) {
        if (--uses[source] == 0) {
          free.push_back(&contents.at(source));
        }
      }
    }
  }
  if (taken != contents.size()) {
    return corrupt_manifest("contents are made of each other in a circle");
  }
  return {};
}

}  // namespace

const std::vector<ContentHash>& sources_of(const Edge& edge) {
  static const std::vector<ContentHash> none;
  const auto* delta = std::get_if<DeltaEdge>(&edge);
  return delta != nullptr ? delta->sources : none;
}

Json contents_json(const std::map<ContentHash, Content>& contents) {
  Json out = Json::object();
  for (const auto& [sha256, content] : contents) {
    Json edges = Json::array();
    for (const Edge& edge : content.edges) {
      edges.push(edge_json(edge));
    }
    out.set(sha256.hex(),
            Json::object().set("bytes", content.bytes).set("edges", std::move(edges)));
  }
  return out;
}

Result<std::map<ContentHash, Content>> parse_contents(const Json& root) {
  HFD_TRY(const Json* json, root.member("contents"));
  if (!json->is_object()) {
    return corrupt_manifest("\"contents\" is not an object");
  }
  std::map<ContentHash, Content> contents;
  for (const auto& [key, value] : *json->as_object()) {
    HFD_TRY(const ContentHash sha256, ContentHash::from_hex(key));
    HFD_TRY(Content content, parse_content(sha256, value));
    if (!contents.emplace(sha256, std::move(content)).second) {
      return corrupt_manifest("a content stands twice").on(key);  // in upper and in lower case
    }
  }
  HFD_TRY_VOID(check_sources(contents));
  return contents;
}

}  // namespace hfd::lineage
