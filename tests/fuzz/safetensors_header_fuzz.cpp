// SPDX-License-Identifier: Apache-2.0
// The safetensors header parser on arbitrary bytes. What it accepts must be consistent: tensors follow
// each other without holes inside the file that the header demands.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "format/header.hpp"
#include "format/shard_index.hpp"

namespace {

void check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

void check_header(const hfd::format::Header& header) {
  std::uint64_t end = header.data_offset;
  for (const hfd::format::Tensor& tensor : header.tensors) {
    check(tensor.range.offset == end);
    end = tensor.range.end();
    const std::uint64_t bits = tensor.elements() * hfd::format::dtype_bits(tensor.dtype);
    check(bits / 8 == tensor.range.size);
  }
  check(end == header.file_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (size >= 8) {
    const auto json_bytes = hfd::format::header_json_bytes(bytes.first(8), size);
    if (json_bytes.ok()) {
      const auto header = hfd::format::parse_header(bytes.subspan(8, *json_bytes));
      if (header.ok()) {
        check_header(*header);
      }
    }
  }
  const auto header = hfd::format::parse_header(bytes);  // bare JSON is easier to mutate
  if (header.ok()) {
    check_header(*header);
  }
  static_cast<void>(hfd::format::parse_shard_index(bytes).ok());
  return 0;
}
