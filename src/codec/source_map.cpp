// SPDX-License-Identifier: Apache-2.0
#include "codec/source_map.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "codec/content_index.hpp"

namespace hfd::codec {
namespace {

/// Bytes compared to tell that a tensor of the same name has a wholly different content.
constexpr std::uint64_t name_check_bytes = 1024;

struct SourceHeader {
  std::uint32_t source = 0;  ///< number in the caller's list
  format::Header header;
  base::ReadableBytes* reader = nullptr;
  std::uint64_t mapped_bytes = 0;
};

/// What a target tensor is coded against; bytes == 0: nothing.
struct Match {
  std::size_t header = 0;  ///< index into the source headers
  std::uint32_t tensor = 0;
  std::uint64_t bytes = 0;
};

class TensorMapper {
 public:
  TensorMapper(base::ReadableBytes& target, const format::Header& header,
               std::vector<SourceHeader>& sources)
      : target_(target), header_(header), sources_(sources), matches_(header.tensors.size()) {}

  /// Fills matches for all tensors.
  Result<void> run() {
    index_names();
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < header_.tensors.size(); ++i) {
      if (header_.tensors[i].range.size == 0 || !header_.tensors[i].range.within(target_.size())) {
        continue;
      }
      HFD_TRY(const bool settled, match_by_name(i));
      if (!settled) {
        open.push_back(i);
      }
    }
    return match_by_content(open);
  }

  const std::vector<Match>& matches() const { return matches_; }

 private:
  void index_names() {
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const auto& tensors = sources_[s].header.tensors;
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        if (tensors[t].range.within(sources_[s].reader->size())) {
          by_name_[tensors[t].name].push_back({s, static_cast<std::uint32_t>(t), 0});
        }
      }
    }
  }

  const format::Tensor& tensor_of(const Match& match) const {
    return sources_[match.header].header.tensors[match.tensor];
  }

  /// Bytes of the rows that both have, when only the first dimension differs; else 0.
  static std::uint64_t common_row_bytes(const format::Tensor& a, const format::Tensor& b) {
    if (a.dtype != b.dtype || a.shape.size() != b.shape.size() || a.shape.empty() ||
        !std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1)) {
      return 0;
    }
    return std::min(a.range.size, b.range.size);
  }

  /// True when the tensor needs no search by content.
  Result<bool> match_by_name(std::size_t i) {
    const format::Tensor& tensor = header_.tensors[i];
    const auto found = by_name_.find(tensor.name);
    if (found == by_name_.end()) {
      return false;
    }
    for (Match match : found->second) {
      const format::Tensor& old = tensor_of(match);
      if (old.dtype == tensor.dtype && old.range.size == tensor.range.size) {
        match.bytes = tensor.range.size;
        matches_[i] = match;
        return looks_related(tensor, match);
      }
    }
    for (Match match : found->second) {
      match.bytes = common_row_bytes(tensor, tensor_of(match));
      if (match.bytes > matches_[i].bytes) {
        matches_[i] = match;
      }
    }
    return matches_[i].bytes > 0;
  }

  /// False when hardly a word of a sample is equal: layers may have been renumbered. Unrelated bf16
  /// weights share 0.5 % of words by chance, a dense fine-tune leaves 3 % or more as they are.
  Result<bool> looks_related(const format::Tensor& tensor, const Match& match) {
    const std::size_t width = format::dtype_word_bytes(tensor.dtype);
    const std::uint64_t bytes = std::min(tensor.range.size, name_check_bytes);
    const std::uint64_t middle = (tensor.range.size - bytes) / 2 / 8 * 8;
    base::Bytes now(static_cast<std::size_t>(bytes));
    base::Bytes old(now.size());
    HFD_TRY_VOID(target_.read_at(tensor.range.offset + middle, now));
    HFD_TRY_VOID(
        sources_[match.header].reader->read_at(tensor_of(match).range.offset + middle, old));
    std::size_t equal = 0;
    for (std::size_t at = 0; at + width <= now.size(); at += width) {
      equal += std::memcmp(now.data() + at, old.data() + at, width) == 0 ? 1U : 0U;
    }
    return equal * 50 > now.size() / width;
  }

  Result<void> match_by_content(const std::vector<std::size_t>& open) {
    if (open.empty()) {
      return {};
    }
    std::vector<std::uint64_t> wanted;
    for (const std::size_t i : open) {
      wanted.push_back(header_.tensors[i].range.size);
    }
    std::sort(wanted.begin(), wanted.end());
    ContentIndex index;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const auto& tensors = sources_[s].header.tensors;
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        const bool useful = tensors[t].range.size > 0 &&
                            tensors[t].range.within(sources_[s].reader->size()) &&
                            std::binary_search(wanted.begin(), wanted.end(), tensors[t].range.size);
        if (useful) {
          HFD_TRY(const WindowHashes windows, sample_windows(*sources_[s].reader, tensors[t]));
          index.add(tensors[t], {static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(t)},
                    windows);
        }
      }
    }
    for (const std::size_t i : open) {
      const format::Tensor& tensor = header_.tensors[i];
      HFD_TRY(const WindowHashes windows, sample_windows(target_, tensor));
      const std::optional<TensorPlace> place = index.find(tensor, windows);
      if (place) {
        matches_[i] = {place->source, place->tensor, tensor.range.size};
      }
    }
    return {};
  }

  base::ReadableBytes& target_;
  const format::Header& header_;
  std::vector<SourceHeader>& sources_;
  std::vector<Match> matches_;
  std::unordered_map<std::string, std::vector<Match>> by_name_;
};

/// Headers of all sources that have one, the one with the target's path first.
Result<std::vector<SourceHeader>> source_headers(const std::vector<SourceFile>& sources,
                                                 const std::string& target_path) {
  std::vector<SourceHeader> headers;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    HFD_TRY(std::optional<format::Header> header, read_header(*sources[i].reader));
    if (header) {
      headers.push_back({static_cast<std::uint32_t>(i), std::move(*header), sources[i].reader, 0});
    }
  }
  std::stable_partition(headers.begin(), headers.end(), [&](const SourceHeader& header) {
    return sources[header.source].path == target_path;
  });
  return headers;
}

Result<base::Bytes> read_range(base::ReadableBytes& file, std::uint64_t offset,
                               std::uint64_t size) {
  base::Bytes bytes(static_cast<std::size_t>(size));
  HFD_TRY_VOID(file.read_at(offset, bytes));
  return bytes;
}

/// Extents for the header text: mapped when equal, else with the header of the source that gives
/// most tensors as prefix.
Result<ExtentMap> map_header(base::ReadableBytes& target, std::uint64_t header_bytes,
                             const std::vector<SourceHeader>& sources, std::uint64_t block_bytes) {
  const auto best = std::max_element(
      sources.begin(), sources.end(),
      [](const SourceHeader& a, const SourceHeader& b) { return a.mapped_bytes < b.mapped_bytes; });
  if (best == sources.end()) {
    return ExtentMap{};
  }
  const std::uint64_t source_bytes = best->header.data_offset;
  if (source_bytes == header_bytes) {
    HFD_TRY(const base::Bytes now, read_range(target, 0, header_bytes));
    HFD_TRY(const base::Bytes old, read_range(*best->reader, 0, header_bytes));
    if (now == old) {
      return ExtentMap{
          {{0, header_bytes}, ExtentUse::mapped, WordKind::w1, best->source, {0, header_bytes}}};
    }
  }
  return header_text_extents(header_bytes, source_bytes, best->source, block_bytes);
}

Result<SourceMap> map_tensors(base::ReadableBytes& target, const format::Header& header,
                              std::vector<SourceHeader>& sources, std::uint64_t block_bytes) {
  TensorMapper mapper(target, header, sources);
  HFD_TRY_VOID(mapper.run());
  SourceMap map;
  map.has_tensors = true;
  ExtentMap tensors;
  for (std::size_t i = 0; i < header.tensors.size(); ++i) {
    const format::Tensor& tensor = header.tensors[i];
    const Match& match = mapper.matches()[i];
    const WordKind kind = word_kind_of(tensor.dtype);
    const std::uint64_t width = word_bytes(kind);
    if (!tensor.range.within(target.size())) {
      break;  // the file is shorter than its header says: the rest is bytes
    }
    map.total_elements += tensor.range.size / width;
    if (match.bytes > 0) {
      SourceHeader& source = sources[match.header];
      source.mapped_bytes += match.bytes;
      tensors.push_back({{tensor.range.offset, match.bytes},
                         ExtentUse::mapped,
                         kind,
                         source.source,
                         {source.header.tensors[match.tensor].range.offset, match.bytes}});
    }
    if (match.bytes < tensor.range.size) {
      map.literal_elements += (tensor.range.size - match.bytes) / width;
      tensors.push_back({{tensor.range.offset + match.bytes, tensor.range.size - match.bytes},
                         ExtentUse::literal,
                         kind,
                         0,
                         {}});
    }
  }
  HFD_TRY(map.extents, map_header(target, header.data_offset, sources, block_bytes));
  map.extents.insert(map.extents.end(), tensors.begin(), tensors.end());
  merge_extents(map.extents);
  return map;
}

}  // namespace

Result<std::optional<format::Header>> read_header(base::ReadableBytes& file) {
  if (file.size() < 10) {
    return std::optional<format::Header>{};
  }
  HFD_TRY(const base::Bytes first, read_range(file, 0, 8));
  const Result<std::uint64_t> json_bytes = format::header_json_bytes(first, file.size());
  if (!json_bytes) {
    return std::optional<format::Header>{};
  }
  HFD_TRY(const base::Bytes json, read_range(file, 8, *json_bytes));
  Result<format::Header> header = format::parse_header(json);
  if (!header) {
    return std::optional<format::Header>{};
  }
  return std::optional<format::Header>{std::move(*header)};
}

Result<SourceMap> map_sources(base::ReadableBytes& target, const std::vector<SourceFile>& sources,
                              const std::string& target_path, std::uint64_t block_bytes) {
  HFD_TRY(const std::optional<format::Header> header, read_header(target));
  if (header) {
    HFD_TRY(std::vector<SourceHeader> headers, source_headers(sources, target_path));
    return map_tensors(target, *header, headers, block_bytes);
  }
  SourceMap map;
  const auto same_path =
      std::find_if(sources.begin(), sources.end(), [&](const SourceFile& source) {
        return source.path == target_path && source.reader->size() > 0;
      });
  if (same_path != sources.end()) {
    const auto number = static_cast<std::uint32_t>(same_path - sources.begin());
    HFD_TRY(map.extents, map_opaque(target, *same_path->reader, number, block_bytes));
    merge_extents(map.extents);
  }
  return map;
}

}  // namespace hfd::codec
