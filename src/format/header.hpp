// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file as data: where each tensor stands. Never re-serialised, never
// judged more strictly than needed: a file that is not safetensors is "opaque" and handled as
// bytes. Source of the rules: safetensors 0.8.0 (shared reference delta-formats.md section 4).
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hfdeltafs/types.hpp"

#include "base/bytes.hpp"
#include "format/dtype.hpp"

namespace hfd::format {

/// The library's own limit on the JSON part, in bytes.
inline constexpr std::uint64_t header_bytes_max = 100'000'000;

struct Tensor {
  std::string name;
  DType dtype = DType::u8;
  std::vector<std::uint64_t> shape;
  ByteRange range;  ///< in the FILE (not relative to the data section)
  std::uint64_t elements() const;
};

struct Header {
  std::uint64_t data_offset = 0;  ///< first byte after the JSON
  std::uint64_t file_bytes = 0;   ///< size that the header demands: end of the last tensor
  std::vector<Tensor> tensors;    ///< by offset, then in header order
};

/// Length of the JSON part from the first 8 bytes of a file; `corrupt` when it cannot be one for a
/// file of `file_bytes` bytes (0, over header_bytes_max, past the end).
Result<std::uint64_t> header_json_bytes(base::ByteView first_8_bytes, std::uint64_t file_bytes);

/// Parses the JSON part. Accepts what safetensors 0.8.0 accepts, but not duplicate keys. The sizes
/// are checked against each other (no hole, no overlap, size = shape x dtype) but NOT against the
/// real size of the file: callers compare file_bytes (shorter = incomplete, longer = trailing
/// bytes).
Result<Header> parse_header(base::ByteView json);

}  // namespace hfd::format
