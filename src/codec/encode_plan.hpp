// SPDX-License-Identifier: Apache-2.0
// What the encoder decides before the first block: source map, class tables, block size. Made from
// headers and samples, so that the target itself is streamed once. Writer only.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/block_codec.hpp"
#include "codec/delta_writer.hpp"
#include "codec/source_map.hpp"

namespace hfd::codec {

struct EncodePlan {
  SourceMap map;
  ClassTables tables;
  std::uint8_t block_log2 = 18;
  bool chained = false;  ///< raw blocks continue one stream: repeats reach further than a block
  BlockCodecOptions block_options;
};

/// Precondition: block_bytes is a power of two within the format's limits.
Result<EncodePlan> plan_encode(base::ReadableBytes& target, const std::vector<SourceFile>& sources,
                               const EncodeOptions& options);

/// Reads the source bytes of a layout, one span after the other.
Result<base::Bytes> read_sources(const BlockLayout& layout, const std::vector<SourceFile>& sources);

}  // namespace hfd::codec
