// SPDX-License-Identifier: Apache-2.0
// Writing and reading manifests: the outer object, files, and the checks that concern the whole.
// Edges are in manifest_edges.cpp.
//
// Layout, format 0. One JSON object, members in this order, no white space, one newline at the end:
//   "hfdeltafs"  0: format number. A reader refuses a larger one.
//   "parent"     version id (64 hex), or null
//   "seq"        number of the version: 0 = the base itself, 1 = the first publish
//   "ref"        ref it was published to; empty for the base, which belongs to no ref
//   "time"       RFC 3339, UTC, nine decimals unless whole
//   "message"    text
//   "base"       {"uri", "revision"}, absent when there is none
//   "stats"      {"full_bytes", "stored_bytes", "changed_elements", "total_elements"}
//   "files"      array sorted by path (bytewise), each one of
//                {"path", "bytes", "sha256", "mtime"[, "executable": true]}
//                {"path", "kind": "symlink", "target", "mtime"}
//                {"path", "kind": "folder", "mtime"}       (empty folders only)
//                a name that is not UTF-8 stands as "path_b64"/"target_b64" (base64) instead
//   "contents"   object keyed by content sha256 (sorted): {"bytes", "edges": [edge, ...]}, cheapest
//   first edge         {"kind": "blob", "object", "bytes", "encoding": "identity"|"zstd"|"hfd"
//                 [, "directory": [offset, size], "directory_sha256"]}            (the latter for
//                 hfd)
//                {"kind": "delta", "object", "bytes", "directory", "directory_sha256", "sources":
//                [sha256, ...]}
//                {"kind": "upstream", "uri", "path"}
// Unknown members are ignored, so members can be added without a new format number.
#include "lineage/manifest.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/json.hpp"
#include "lineage/manifest_edges.hpp"

namespace hfd::lineage {
namespace {

using base::Json;

constexpr std::uint64_t format_number = 0;
constexpr std::uint64_t message_bytes_max = 1U << 20U;
constexpr std::uint64_t uri_bytes_max = 8192;
constexpr int depth_max = 12;
/// Times that RFC 3339 text and 64 bits of nanoseconds can both hold (years 1680 to 2260).
constexpr base::UnixNanoseconds time_min = -9'150'000'000'000'000'000;
constexpr base::UnixNanoseconds time_max = 9'150'000'000'000'000'000;

std::string time_text(base::UnixNanoseconds time) {
  return base::to_rfc3339(std::clamp(time, time_min, time_max));
}

Json file_json(const FileEntry& file) {
  Json out = Json::object();
  set_bytes(out, "path", file.path);
  switch (file.kind) {
    case FileEntry::Kind::file:
      out.set("bytes", file.bytes).set("sha256", file.sha256.hex());
      break;
    case FileEntry::Kind::symlink:
      out.set("kind", "symlink");
      set_bytes(out, "target", file.symlink_target);
      break;
    case FileEntry::Kind::folder: out.set("kind", "folder"); break;
  }
  out.set("mtime", time_text(file.mtime));
  if (file.kind == FileEntry::Kind::file && file.executable) {
    out.set("executable", true);
  }
  return out;
}

Json stats_json(const VersionStats& stats) {
  return Json::object()
      .set("full_bytes", stats.full_bytes)
      .set("stored_bytes", stats.stored_bytes)
      .set("changed_elements", stats.changed_elements)
      .set("total_elements", stats.total_elements);
}

Result<base::UnixNanoseconds> get_time(const Json& object, std::string_view key) {
  constexpr std::size_t time_bytes_max = 30;  // with nine decimals
  HFD_TRY(const std::string text, object.string_member(key));
  if (text.size() > time_bytes_max) {
    return corrupt_manifest("a time is longer than any time is");
  }
  return base::from_rfc3339(text);
}

Result<FileEntry> parse_file(const Json& json) {
  FileEntry file;
  HFD_TRY(file.path, get_bytes(json, "path"));
  if (!is_valid_path(file.path)) {
    return corrupt_manifest("a file has a path that is not allowed").on(file.path.substr(0, 200));
  }
  HFD_TRY(file.mtime, get_time(json, "mtime"));
  if (const Json* executable = json.find("executable")) {
    if (executable->as_bool() == nullptr) {
      return corrupt_manifest("\"executable\" is not true or false").on(file.path);
    }
    file.executable = *executable->as_bool();
  }
  const Json* kind = json.find("kind");
  if (kind == nullptr) {
    HFD_TRY(file.bytes, json.unsigned_member("bytes"));
    HFD_TRY(file.sha256, get_hash<ContentHash>(json, "sha256"));
    return file;
  }
  const std::string* name = kind->as_string();
  if (name != nullptr && *name == "folder") {
    file.kind = FileEntry::Kind::folder;
    return file;
  }
  if (name == nullptr || *name != "symlink") {
    return corrupt_manifest("a file is of a kind that does not exist").on(file.path);
  }
  file.kind = FileEntry::Kind::symlink;
  HFD_TRY(file.symlink_target, get_bytes(json, "target"));
  if (!is_inside_symlink(file.path, file.symlink_target)) {
    return corrupt_manifest("a symlink leads out of the tree").on(file.path);
  }
  return file;
}

Result<std::vector<FileEntry>> parse_files(const Json& root) {
  HFD_TRY(const Json* list, root.member("files"));
  if (!list->is_array()) {
    return corrupt_manifest("\"files\" is not an array");
  }
  std::vector<FileEntry> files;
  files.reserve(list->as_array()->size());
  for (const Json& json : *list->as_array()) {
    HFD_TRY(FileEntry file, parse_file(json));
    if (!files.empty() && !(files.back().path < file.path)) {
      return corrupt_manifest("files are not sorted by path, or one stands twice").on(file.path);
    }
    files.push_back(std::move(file));
  }
  return files;
}

/// No path may lie below another entry: files and symlinks hold nothing, and listed folders are
/// empty.
Result<void> check_tree(const std::vector<FileEntry>& files) {
  std::unordered_set<std::string_view> entries;
  for (const FileEntry& file : files) {
    entries.insert(file.path);
  }
  for (const FileEntry& file : files) {
    const std::string_view path = file.path;
    for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
         slash = path.find('/', slash + 1)) {
      if (entries.count(path.substr(0, slash)) != 0) {
        return corrupt_manifest("a path lies below something that is not a folder").on(path);
      }
    }
  }
  return {};
}

Result<void> check_files_have_contents(const Manifest& manifest) {
  for (const FileEntry& file : manifest.files) {
    if (file.kind != FileEntry::Kind::file) {
      continue;
    }
    const auto found = manifest.contents.find(file.sha256);
    if (found == manifest.contents.end()) {
      return corrupt_manifest("the content of a file is not listed").on(file.path);
    }
    if (found->second.bytes != file.bytes) {
      return corrupt_manifest("a file and its content differ in size").on(file.path);
    }
  }
  return {};
}

Result<VersionStats> parse_stats(const Json& root) {
  HFD_TRY(const Json* json, root.member("stats"));
  VersionStats stats;
  HFD_TRY(stats.full_bytes, json->unsigned_member("full_bytes"));
  HFD_TRY(stats.stored_bytes, json->unsigned_member("stored_bytes"));
  HFD_TRY(stats.changed_elements, json->unsigned_member("changed_elements"));
  HFD_TRY(stats.total_elements, json->unsigned_member("total_elements"));
  return stats;
}

Result<std::optional<BaseInfo>> parse_base(const Json& root) {
  const Json* json = root.find("base");
  if (json == nullptr) {
    return std::optional<BaseInfo>{};
  }
  BaseInfo info;
  HFD_TRY(info.uri, json->string_member("uri"));
  HFD_TRY(info.revision, json->string_member("revision"));
  if (info.uri.empty() || info.uri.size() > uri_bytes_max || info.revision.size() > uri_bytes_max) {
    return corrupt_manifest("the base has no URI, or one that is too long");
  }
  return std::optional<BaseInfo>(std::move(info));
}

/// Who, when, after what: everything but files and contents.
Result<Manifest> parse_descent(const Json& root) {
  Manifest manifest;
  HFD_TRY(const Json* parent, root.member("parent"));
  if (!parent->is_null()) {
    HFD_TRY(manifest.parent, get_hash<VersionId>(root, "parent"));
  }
  HFD_TRY(manifest.sequence, root.unsigned_member("seq"));
  if (manifest.sequence > sequence_max || (manifest.sequence == 0 && manifest.parent)) {
    return corrupt_manifest("the sequence number cannot be");
  }
  HFD_TRY(manifest.ref, root.string_member("ref"));
  if (!is_valid_ref(manifest.ref) && !(manifest.ref.empty() && manifest.sequence == 0)) {
    return corrupt_manifest("the ref has a name that is not allowed");
  }
  HFD_TRY(manifest.time, get_time(root, "time"));
  HFD_TRY(manifest.message, root.string_member("message"));
  if (manifest.message.size() > message_bytes_max) {
    return corrupt_manifest("the message is too long");
  }
  HFD_TRY(manifest.base, parse_base(root));
  HFD_TRY(manifest.stats, parse_stats(root));
  return manifest;
}

Result<Manifest> parse_root(const Json& root) {
  HFD_TRY(const std::uint64_t format, root.unsigned_member("hfdeltafs"));
  if (format > format_number) {
    Error error{ErrorCode::unsupported, "cannot read the manifest: it has format " +
                                            std::to_string(format) + ", this program knows up to " +
                                            std::to_string(format_number)};
    return std::move(error).with_hint("use a newer hfdeltafs");
  }
  HFD_TRY(Manifest manifest, parse_descent(root));
  HFD_TRY(manifest.files, parse_files(root));
  HFD_TRY_VOID(check_tree(manifest.files));
  HFD_TRY(manifest.contents, parse_contents(root));
  HFD_TRY_VOID(check_files_have_contents(manifest));
  return manifest;
}

}  // namespace

Error corrupt_manifest(std::string_view why) {
  return Error{ErrorCode::corrupt, "cannot read the manifest: " + std::string(why)};
}

void set_bytes(Json& object, const std::string& key, const std::string& bytes) {
  if (base::is_utf8(bytes)) {
    object.set(key, bytes);
  } else {
    object.set(key + "_b64", base::to_base64(base::as_bytes(bytes)));
  }
}

Result<std::string> get_bytes(const Json& object, const std::string& key) {
  if (object.find(key) != nullptr) {
    return object.string_member(key);
  }
  HFD_TRY(const std::string text, object.string_member(key + "_b64"));
  HFD_TRY(const base::Bytes bytes, base::from_base64(text));
  if (base::is_utf8(base::as_text(bytes))) {
    return corrupt_manifest("a name that is UTF-8 stands in base64");  // one name, one spelling
  }
  return std::string(base::as_text(bytes));
}

std::string serialize_manifest(const Manifest& manifest) {
  Json root = Json::object();
  root.set("hfdeltafs", format_number)
      .set("parent", manifest.parent ? Json(manifest.parent->hex()) : Json())
      .set("seq", manifest.sequence)
      .set("ref", manifest.ref)
      .set("time", time_text(manifest.time))
      .set("message", manifest.message);
  if (manifest.base) {
    root.set(
        "base",
        Json::object().set("uri", manifest.base->uri).set("revision", manifest.base->revision));
  }
  root.set("stats", stats_json(manifest.stats));
  Json files = Json::array();
  for (const FileEntry& file : manifest.files) {
    files.push(file_json(file));
  }
  root.set("files", std::move(files)).set("contents", contents_json(manifest.contents));
  return root.dump() + "\n";
}

Result<Manifest> parse_manifest(base::ByteView bytes) {
  HFD_TRY(const Json root,
          base::parse_json(bytes, {.bytes_max = manifest_bytes_max, .depth_max = depth_max}));
  if (!root.is_object()) {
    return corrupt_manifest("it is not a JSON object");
  }
  auto manifest = parse_root(root);
  if (!manifest.ok() && manifest.error().code == ErrorCode::invalid_argument) {
    manifest.error().code =
        ErrorCode::corrupt;  // a hash that is no hash: the manifest's fault, not the caller's
  }
  return manifest;
}

}  // namespace hfd::lineage
