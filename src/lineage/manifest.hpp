// SPDX-License-Identifier: Apache-2.0
// The manifest: an immutable list of the files of one version and of where their bytes come from.
// Written by publish, read by everybody; named by the sha256 of its bytes. Parsing is hostile-safe:
// paths are checked segment by segment, numbers against limits, sources against cycles.
//
// A manifest is enough by itself: `contents` holds an entry for every content that is needed to
// rebuild its files, through all sources, so a reader fetches one manifest and no history. Nodes
// are contents, edges are ways to make them (design.md section 4, "Version graph").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hfdeltafs/types.hpp"

#include "base/bytes.hpp"
#include "base/clock.hpp"

namespace hfd::lineage {

/// Literal bytes in `blobs/<object>`. identity: as they are; zstd: one frame (small files);
/// hfd: a delta container without sources, readable block by block (full anchors).
struct BlobEdge {
  enum class Encoding { identity, zstd, hfd };
  ObjectId object;
  std::uint64_t object_bytes = 0;
  Encoding encoding = Encoding::identity;
  ByteRange directory;           ///< hfd only
  ContentHash directory_sha256;  ///< hfd only
};

/// `deltas/<object>.hfd` applied to other contents, which have entries of their own.
struct DeltaEdge {
  ObjectId object;
  std::uint64_t object_bytes = 0;
  ByteRange directory;  ///< directory + footer within the object
  ContentHash directory_sha256;
  std::vector<ContentHash> sources;  ///< in the order of the delta's own source table
};

/// A file of a base at a fixed revision: nothing is stored on the bucket.
struct UpstreamEdge {
  std::string uri;   ///< remote, canonical
  std::string path;  ///< object name within it
};

using Edge = std::variant<BlobEdge, DeltaEdge, UpstreamEdge>;

struct Content {
  ContentHash sha256;
  std::uint64_t bytes = 0;
  std::vector<Edge> edges;  ///< at least one, cheapest first
};

struct FileEntry {
  enum class Kind { file, symlink, folder };  ///< folder: only empty ones are listed
  std::string path;  ///< bytes, relative, no "." or ".." segments, no leading slash
  Kind kind = Kind::file;
  std::uint64_t bytes = 0;
  ContentHash sha256;  ///< file only
  base::UnixNanoseconds mtime = 0;
  bool executable = false;
  std::string symlink_target;  ///< stays inside the tree
};

/// What the publish did, for log; not needed to read the version.
struct VersionStats {
  std::uint64_t full_bytes = 0;    ///< sum of file sizes
  std::uint64_t stored_bytes = 0;  ///< delta and blob objects this publish wrote
  std::uint64_t changed_elements = 0;
  std::uint64_t total_elements = 0;
};

struct BaseInfo {
  std::string uri;       ///< canonical
  std::string revision;  ///< full commit of a Hub repo; empty for a folder
};

struct Manifest {
  std::optional<VersionId> parent;
  std::uint64_t sequence = 0;  ///< 0 is the base itself, 1 the first publish
  std::string ref;             ///< the ref it was published to
  base::UnixNanoseconds time = 0;
  std::string message;
  std::optional<BaseInfo> base;
  VersionStats stats;
  std::vector<FileEntry> files;  ///< sorted by path (bytewise), unique
  std::map<ContentHash, Content> contents;
};

/// The exact bytes that are stored and hashed. Deterministic.
std::string serialize_manifest(const Manifest& manifest);
/// `corrupt` with the reason for anything that does not fit, unsupported for a newer layout
/// version.
Result<Manifest> parse_manifest(base::ByteView bytes);

/// Limits on what a remote may make us hold.
inline constexpr std::uint64_t manifest_bytes_max = 256U << 20U;
inline constexpr std::uint64_t path_bytes_max = 4096;
inline constexpr std::uint64_t name_bytes_max = 255;

/// True when `path` may stand in a manifest: relative, no empty, "." or ".." segment, no NUL, not
/// under ".hfdelta", within the limits.
bool is_valid_path(std::string_view path);
/// True when a symlink at `path` with `target` stays inside the tree.
bool is_inside_symlink(std::string_view path, std::string_view target);
/// Refs: segments of [A-Za-z0-9._-]+, not ".", ".." or "head", not all digits; 200 bytes at most.
bool is_valid_ref(std::string_view ref);

}  // namespace hfd::lineage
