// SPDX-License-Identifier: Apache-2.0
#include "api/diff.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "api/content_stream.hpp"
#include "api/tensor_compare.hpp"
#include "base/hash.hpp"
#include "format/header.hpp"

namespace hfd::api {
namespace {

using lineage::FileEntry;

/// One tensor of one side.
struct Place {
  const FileEntry* file = nullptr;
  format::Tensor tensor;
  bool taken = false;  ///< matched with one of the other side
};

bool is_safetensors(const FileEntry& file) {
  static constexpr std::string_view suffix = ".safetensors";
  return file.kind == FileEntry::Kind::file && file.path.size() >= suffix.size() &&
         file.path.compare(file.path.size() - suffix.size(), suffix.size(), suffix) == 0;
}

bool is_equal(const FileEntry& a, const FileEntry& b) {
  return a.kind == b.kind && a.sha256 == b.sha256 && a.bytes == b.bytes &&
         a.symlink_target == b.symlink_target && a.executable == b.executable;
}

/// Tensors of a safetensors file; none when it is not one after all.
Result<std::vector<format::Tensor>> read_tensors(Session& session,
                                                 const lineage::VersionPtr& version,
                                                 const FileEntry& file) {
  constexpr std::uint64_t length_bytes = 8;
  if (file.bytes < length_bytes) {
    return std::vector<format::Tensor>{};
  }
  const rebuild::ContentRef content{version, file.sha256};
  HFD_TRY(const base::Bytes length,
          session.rebuilder().read_blocking(content, ByteRange{0, length_bytes}));
  const auto json_bytes = format::header_json_bytes(length, file.bytes);
  if (!json_bytes.ok()) {
    return std::vector<format::Tensor>{};
  }
  base::Bytes json;
  HFD_TRY_VOID(stream_content(session.rebuilder(), content, ByteRange{length_bytes, *json_bytes},
                              [&json](base::ByteView piece) -> Result<void> {
                                base::append(json, piece);
                                return {};
                              }));
  auto header = format::parse_header(json);
  if (!header.ok() || header->file_bytes > file.bytes) {
    return std::vector<format::Tensor>{};
  }
  return std::move(header->tensors);
}

class Diff {
 public:
  Diff(Session& session, lineage::VersionPtr a, lineage::VersionPtr b)
      : session_(session), a_(std::move(a)), b_(std::move(b)) {}

  Result<VersionDifference> run() {
    out_.a = a_->id;
    out_.b = b_->id;
    compare_files();
    HFD_TRY(places_a_, read_side(a_));
    HFD_TRY(places_b_, read_side(b_));
    std::vector<const Place*> partners = match_by_name();
    HFD_TRY_VOID(match_by_content(partners));
    for (std::size_t i = 0; i < places_b_.size(); ++i) {
      HFD_TRY(TensorDifference difference, compare(places_b_[i], partners[i]));
      out_.tensors.push_back(std::move(difference));
    }
    for (const Place& place : places_a_) {
      if (!place.taken) {
        TensorDifference removed = describe(place);
        removed.status = TensorStatus::removed;
        removed.changed_elements = removed.elements;
        out_.tensors.push_back(std::move(removed));
      }
    }
    return std::move(out_);
  }

 private:
  void compare_files() {
    const auto& files_a = a_->manifest.files;
    const auto& files_b = b_->manifest.files;
    std::map<std::string_view, const FileEntry*> by_path;
    for (const FileEntry& file : files_a) {
      by_path.emplace(file.path, &file);
    }
    for (const FileEntry& file : files_b) {
      const auto found = by_path.find(file.path);
      if (found == by_path.end()) {
        out_.files_added.push_back(file.path);
        continue;
      }
      if (!is_equal(*found->second, file)) {
        out_.files_changed.push_back(file.path);
      }
      by_path.erase(found);
    }
    for (const auto& [path, file] : by_path) {
      out_.files_removed.emplace_back(path);
    }
  }

  Result<std::vector<Place>> read_side(const lineage::VersionPtr& version) {
    std::vector<Place> places;
    for (const FileEntry& file : version->manifest.files) {
      if (!is_safetensors(file)) {
        continue;
      }
      HFD_TRY(std::vector<format::Tensor> tensors, read_tensors(session_, version, file));
      for (format::Tensor& tensor : tensors) {
        places.push_back({&file, std::move(tensor), false});
      }
    }
    return places;
  }

  /// For each tensor of B the one of A that has its name, or null.
  std::vector<const Place*> match_by_name() {
    std::map<std::pair<std::string_view, std::string_view>, Place*> exact;
    std::map<std::string_view, std::vector<Place*>> named;
    for (Place& place : places_a_) {
      exact.emplace(
          std::pair<std::string_view, std::string_view>(place.file->path, place.tensor.name),
          &place);
      named[place.tensor.name].push_back(&place);
    }
    std::vector<const Place*> partners(places_b_.size(), nullptr);
    for (std::size_t i = 0; i < places_b_.size(); ++i) {
      const auto found = exact.find({places_b_[i].file->path, places_b_[i].tensor.name});
      if (found != exact.end()) {
        found->second->taken = true;
        partners[i] = found->second;
      }
    }
    for (std::size_t i = 0; i < places_b_.size(); ++i) {
      const auto found = named.find(places_b_[i].tensor.name);
      if (partners[i] == nullptr && found != named.end() && found->second.size() == 1 &&
          !found->second[0]->taken) {
        found->second[0]->taken = true;
        partners[i] = found->second[0];
      }
    }
    return partners;
  }

  /// Among what names did not match: the same bytes of the same type and size are the same tensor,
  /// renamed.
  Result<void> match_by_content(std::vector<const Place*>& partners) {
    using Key = std::tuple<format::DType, std::uint64_t>;
    std::map<Key, std::vector<Place*>> left;
    for (Place& place : places_a_) {
      if (!place.taken) {
        left[{place.tensor.dtype, place.tensor.range.size}].push_back(&place);
      }
    }
    std::map<const Place*, ContentHash> hashes;  // of tensors of A, made when first needed
    for (std::size_t i = 0; i < places_b_.size(); ++i) {
      const auto found = left.find({places_b_[i].tensor.dtype, places_b_[i].tensor.range.size});
      if (partners[i] != nullptr || found == left.end()) {
        continue;
      }
      HFD_TRY(const ContentHash wanted, hash_of(b_, places_b_[i]));
      for (Place* candidate : found->second) {
        if (candidate->taken) {
          continue;
        }
        auto known = hashes.find(candidate);
        if (known == hashes.end()) {
          HFD_TRY(const ContentHash hash, hash_of(a_, *candidate));
          known = hashes.emplace(candidate, hash).first;
        }
        if (known->second == wanted) {
          candidate->taken = true;
          partners[i] = candidate;
          break;
        }
      }
    }
    return {};
  }

  Result<ContentHash> hash_of(const lineage::VersionPtr& version, const Place& place) {
    base::Sha256 sha256;
    HFD_TRY_VOID(stream_content(session_.rebuilder(), {version, place.file->sha256},
                                place.tensor.range,
                                [&sha256](base::ByteView piece) -> Result<void> {
                                  sha256.update(piece);
                                  return {};
                                }));
    return ContentHash{sha256.finish()};
  }

  static TensorDifference describe(const Place& place) {
    TensorDifference out;
    out.path = place.file->path;
    out.name = place.tensor.name;
    out.dtype = format::dtype_name(place.tensor.dtype);
    out.shape = place.tensor.shape;
    out.elements = place.tensor.elements();
    out.bytes = place.tensor.range.size;
    return out;
  }

  Result<TensorDifference> compare(const Place& place, const Place* partner) {
    TensorDifference out = describe(place);
    if (partner == nullptr) {
      out.status = TensorStatus::added;
      out.changed_elements = out.elements;
      return out;
    }
    out.from_path = partner->file->path == place.file->path ? std::string() : partner->file->path;
    if (partner->tensor.name != place.tensor.name) {
      out.status = TensorStatus::renamed;
      out.from = partner->tensor.name;
      return out;
    }
    if (partner->tensor.dtype != place.tensor.dtype) {
      out.status = TensorStatus::retyped;
      out.changed_elements = out.elements;
      return out;
    }
    const bool same_place =
        partner->file->sha256 == place.file->sha256 && partner->tensor.range == place.tensor.range;
    if (!same_place) {
      HFD_TRY(out.changed_elements, count_changed(place, *partner));
    }
    out.status = out.changed_elements != 0 || partner->tensor.shape != place.tensor.shape
                     ? TensorStatus::changed
                     : TensorStatus::same;
    return out;
  }

  Result<std::uint64_t> count_changed(const Place& place, const Place& partner) {
    const unsigned bits = format::dtype_bits(place.tensor.dtype);
    const std::uint64_t common = std::min(place.tensor.elements(), partner.tensor.elements());
    // Pieces are whole elements of every width: 6-bit ones come four in three bytes.
    constexpr std::uint64_t piece_bytes = 3U << 20U;
    const std::uint64_t common_bytes = common * bits / 8;
    std::uint64_t changed = place.tensor.elements() - common;
    std::unique_ptr<base::ReadableBytes> old = session_.open_content(a_, partner.file->sha256);
    std::unique_ptr<base::ReadableBytes> now = session_.open_content(b_, place.file->sha256);
    base::Bytes bytes_a;
    base::Bytes bytes_b;
    for (std::uint64_t at = 0; at < common_bytes; at += piece_bytes) {
      const auto count = static_cast<std::size_t>(std::min(piece_bytes, common_bytes - at));
      bytes_a.resize(count);
      bytes_b.resize(count);
      HFD_TRY_VOID(old->read_at(partner.tensor.range.offset + at, bytes_a));
      HFD_TRY_VOID(now->read_at(place.tensor.range.offset + at, bytes_b));
      changed += count_changed_elements(bytes_a, bytes_b, bits);
    }
    return changed;
  }

  Session& session_;
  const lineage::VersionPtr a_;
  const lineage::VersionPtr b_;
  std::vector<Place> places_a_;
  std::vector<Place> places_b_;
  VersionDifference out_;
};

}  // namespace

const char* tensor_status_name(TensorStatus status) {
  switch (status) {
    case TensorStatus::same: return "same";
    case TensorStatus::changed: return "changed";
    case TensorStatus::added: return "added";
    case TensorStatus::removed: return "removed";
    case TensorStatus::renamed: return "renamed";
    case TensorStatus::retyped: return "retyped";
  }
  return "same";
}

Result<VersionDifference> diff_versions(Session& session, const lineage::VersionPtr& a,
                                        const lineage::VersionPtr& b) {
  return Diff(session, a, b).run();
}

}  // namespace hfd::api
