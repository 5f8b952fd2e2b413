// SPDX-License-Identifier: Apache-2.0
// When a set of files is not whole yet. Only what the files themselves say counts:
//  - A safetensors file says how long it is: 8 + N bytes of header, then the end of its last
//  tensor. Shorter
//    than that is incomplete. Longer is not (trailing bytes are the user's business).
//  - A file whose first 8 bytes cannot be a header length (0, over the library's limit: HTML pages,
//  Git LFS
//    pointers, zip files, empty files) says nothing and is published as it is, like a header that
//    is no JSON.
//  - A header that is cut counts as incomplete only when what is there of it starts like JSON.
//  - An index says which shards there are, in its own folder.
#include <algorithm>
#include <set>

#include "format/header.hpp"
#include "format/shard_index.hpp"
#include "publish/publisher.hpp"
#include "publish/sources.hpp"

namespace hfd::publish {
namespace {

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t peek_bytes_max = 64;
/// 60,000 tensors take about 6 MB.
constexpr std::uint64_t index_bytes_max = 64U << 20U;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string n_of_m(std::uint64_t there, std::uint64_t wanted) {
  return std::to_string(there) + " of " + std::to_string(wanted) + " bytes";
}

bool starts_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos || text[first] == '{';
}

/// Why a safetensors file is not whole; empty when it is, or when nothing tells.
Result<std::string> reason_of_safetensors(base::ReadableBytes& bytes) {
  if (bytes.size() < length_bytes) {
    return std::string();
  }
  base::Bytes first(
      static_cast<std::size_t>(std::min(bytes.size(), length_bytes + peek_bytes_max)));
  HFD_TRY_VOID(bytes.read_at(0, first));
  const auto json_bytes = base::load_le<std::uint64_t>(first.data());
  const auto peek = base::as_text(base::ByteView(first).subspan(length_bytes));
  if (json_bytes == 0 || json_bytes > format::header_bytes_max || !starts_like_json(peek)) {
    return std::string();
  }
  if (json_bytes > bytes.size() - length_bytes) {
    return "the header is cut: " + n_of_m(bytes.size(), length_bytes + json_bytes);
  }
  base::Bytes json(static_cast<std::size_t>(json_bytes));
  HFD_TRY_VOID(bytes.read_at(length_bytes, json));
  const auto header = format::parse_header(json);
  if (!header.ok() || header->file_bytes <= bytes.size()) {
    return std::string();
  }
  return "shorter than its header says: " + n_of_m(bytes.size(), header->file_bytes);
}

/// An index that can be read, with the folder that its shards are in ("" or "folder/").
struct FoundIndex {
  std::string path;
  std::string folder;
  format::ShardIndex index;
};

Result<std::vector<FoundIndex>> read_indexes(const std::vector<PublishFile>& files) {
  std::vector<FoundIndex> found;
  for (const PublishFile& file : files) {
    const bool is_index = file.entry.kind == lineage::FileEntry::Kind::file &&
                          ends_with(file.entry.path, ".index.json");
    if (!is_index || file.known || !file.open) {
      continue;
    }
    HFD_TRY(const std::unique_ptr<base::ReadableBytes> bytes, file.open());
    if (bytes->size() > index_bytes_max) {
      continue;
    }
    base::Bytes json(static_cast<std::size_t>(bytes->size()));
    HFD_TRY_VOID(bytes->read_at(0, json));
    if (auto index = format::parse_shard_index(json); index.ok()) {
      const std::string& path = file.entry.path;
      found.push_back({path, path.substr(0, path.rfind('/') + 1), std::move(*index)});
    }
  }
  return found;
}

std::string reason_of_index(const FoundIndex& found, const std::set<std::string_view>& paths) {
  std::string first;
  std::size_t missing = 0;
  for (const std::string& shard : found.index.files) {
    const std::string path = found.folder + shard;
    if (paths.count(path) == 0 && lineage::is_valid_path(path)) {
      first = missing++ == 0 ? shard : first;
    }
  }
  if (missing == 0) {
    return {};
  }
  return "names " + first +
         (missing > 1 ? " and " + std::to_string(missing - 1) + " more" : std::string()) +
         ", not there";
}

std::set<std::string_view> paths_of(const std::vector<PublishFile>& files) {
  std::set<std::string_view> paths;
  for (const PublishFile& file : files) {
    if (file.entry.kind != lineage::FileEntry::Kind::folder) {
      paths.insert(file.entry.path);
    }
  }
  return paths;
}

}  // namespace

Result<std::vector<IncompleteFile>> find_incomplete(const std::vector<PublishFile>& files) {
  std::vector<IncompleteFile> incomplete;
  for (const PublishFile& file : files) {
    const bool is_weights =
        file.entry.kind == lineage::FileEntry::Kind::file && is_safetensors_name(file.entry.path);
    if (!is_weights || file.known || !file.open) {
      continue;
    }
    HFD_TRY(const std::unique_ptr<base::ReadableBytes> bytes, file.open());
    HFD_TRY(std::string reason, reason_of_safetensors(*bytes).on(file.entry.path));
    if (!reason.empty()) {
      incomplete.push_back({file.entry.path, std::move(reason)});
    }
  }
  const std::set<std::string_view> paths = paths_of(files);
  HFD_TRY(const std::vector<FoundIndex> indexes, read_indexes(files));
  for (const FoundIndex& found : indexes) {
    if (std::string reason = reason_of_index(found, paths); !reason.empty()) {
      incomplete.push_back({found.path, std::move(reason)});
    }
  }
  return incomplete;
}

Result<std::vector<IncompleteFile>> find_stale_shards(const std::vector<PublishFile>& files) {
  std::vector<IncompleteFile> stale;
  HFD_TRY(const std::vector<FoundIndex> indexes, read_indexes(files));
  for (const FoundIndex& found : indexes) {
    const std::set<std::string> named(found.index.files.begin(), found.index.files.end());
    for (const PublishFile& file : files) {
      const std::string& path = file.entry.path;
      const bool beside = path.substr(0, path.rfind('/') + 1) == found.folder;
      const bool is_shard = is_safetensors_name(path) && path.find("-of-") != std::string::npos;
      if (beside && is_shard && named.count(path.substr(found.folder.size())) == 0) {
        stale.push_back({path, "not named by " + found.path});
      }
    }
  }
  return stale;
}

}  // namespace hfd::publish
