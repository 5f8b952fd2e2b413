// SPDX-License-Identifier: Apache-2.0
// One block to its payload and back: the groups of the block's layout are coded one after the
// other, each in the way that makes it smallest. Byte layout: FORMAT.md, "Payloads". Pure.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "codec/delta_reader.hpp"
#include "codec/directory.hpp"

namespace hfd::codec {

/// How a group's bytes are stored: the first byte of its section.
enum class GroupCoding : std::uint8_t {
  nothing = 0,  ///< mapped: equals the source; literal and text: zeros
  sparse = 1,   ///< mapped only
  dense = 2,    ///< mapped only
  planes = 3,   ///< byte planes of the words
  zstd = 4,     ///< one frame
  stored = 5,
  prefixed = 6,    ///< text only: one frame with the source as its prefix
  zstd_twice = 7,  ///< varint(size of the inner frame), a frame that holds a frame
  whole = 8,       ///< stands alone at the start of a raw payload: one frame of the whole block
};

struct CodedBlock {
  BlockMode mode = BlockMode::raw;
  base::Bytes payload;
};

struct BlockCodecOptions {
  int literal_level = 3;    ///< zstd level for bytes without a source
  bool try_harder = false;  ///< also try high levels where the bytes look like text
};

/// `source` are the bytes of layout.sources one after the other.
CodedBlock encode_block(const BlockLayout& layout, const ClassTables& tables, base::ByteView source,
                        base::ByteView target, const BlockCodecOptions& options);

/// The inverse, without the hash. `layout` was made with use_sources = (mode != raw).
Result<void> decode_payload(const BlockLayout& layout, const ClassTables& tables, BlockMode mode,
                            base::ByteView payload, base::ByteView source, base::ByteSpan out);

/// Words of mapped groups that differ from their source, plus all words of literal groups other
/// than bytes that no tensor covers; see EncodedDelta::changed_elements.
std::uint64_t count_changed(const BlockLayout& layout, base::ByteView source,
                            base::ByteView target);

}  // namespace hfd::codec
