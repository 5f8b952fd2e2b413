// SPDX-License-Identifier: Apache-2.0
// Decides which bytes of the target are coded against which bytes of which source. Tensors are
// matched by name, then row-wise (a vocabulary that grew), then by content (renamed, re-sharded,
// tied); files that are not safetensors by place or with a moving window. A bad match costs bytes,
// never correctness: the encoder sizes every block without sources too. Writer only; reads headers
// and samples through ReadableBytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/delta_writer.hpp"
#include "codec/extent_map.hpp"
#include "format/header.hpp"

namespace hfd::codec {

struct SourceMap {
  ExtentMap extents;                   ///< sources are numbers of the list given
  std::uint64_t total_elements = 0;    ///< words of all tensors; 0 for files without tensors
  std::uint64_t literal_elements = 0;  ///< words of tensors, or parts of them, without a source
  bool has_tensors = false;
};

/// The header of a file when it is safetensors (tensors may be cut by the end of the file), or
/// nothing. Only I/O failures are errors.
Result<std::optional<format::Header>> read_header(base::ReadableBytes& file);

Result<SourceMap> map_sources(base::ReadableBytes& target, const std::vector<SourceFile>& sources,
                              const std::string& target_path, std::uint64_t block_bytes);

/// The part of map_sources for targets without tensors: each block is mapped to the same place
/// (counted from the start or from the end) of `source` when samples agree, else it gets the
/// surroundings of its place as a prefix.
Result<ExtentMap> map_opaque(base::ReadableBytes& target, base::ReadableBytes& source,
                             std::uint32_t source_number, std::uint64_t block_bytes);

/// Text extents for [0, header_bytes) of the target with the source's header as prefix.
ExtentMap header_text_extents(std::uint64_t header_bytes, std::uint64_t source_header_bytes,
                              std::uint32_t source_number, std::uint64_t block_bytes);

}  // namespace hfd::codec
