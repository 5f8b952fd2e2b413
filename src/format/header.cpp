// SPDX-License-Identifier: Apache-2.0
#include "format/header.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json.hpp"

namespace hfd::format {
namespace {

Error bad(std::string message, std::string_view tensor) {
  return Error{ErrorCode::corrupt, std::move(message), std::string(tensor.substr(0, 200))};
}

/// Bytes of `elements` elements of `bits` bits; `corrupt` when it overflows or ends inside a byte.
Result<std::uint64_t> tensor_bytes(const Tensor& tensor) {
  std::uint64_t bits = dtype_bits(tensor.dtype);
  for (const std::uint64_t dimension : tensor.shape) {
    if (__builtin_mul_overflow(bits, dimension, &bits)) {
      return bad("the shape overflows", tensor.name);
    }
  }
  if (bits % 8 != 0) {
    return bad("the tensor ends inside a byte", tensor.name);
  }
  return bits / 8;
}

Result<std::vector<std::uint64_t>> unsigned_array(const base::Json& info, std::string_view key,
                                                  std::string_view tensor) {
  HFD_TRY(const base::Json* member, info.member(key));
  const base::Json::Array* array = member->as_array();
  if (array == nullptr) {
    return bad(std::string(key) + " is not an array", tensor);
  }
  std::vector<std::uint64_t> values;
  values.reserve(array->size());
  for (const base::Json& element : *array) {
    HFD_TRY(const std::uint64_t value, element.as_unsigned());
    values.push_back(value);
  }
  return values;
}

/// One member of the header object; range.offset is still relative to the data section.
Result<Tensor> parse_tensor(const std::string& name, const base::Json& info) {
  if (!info.is_object()) {
    return bad("the tensor's description is not an object", name);
  }
  Tensor tensor;
  tensor.name = name;
  HFD_TRY(const std::string dtype, info.string_member("dtype"));
  const std::optional<DType> known = dtype_from_name(dtype);
  if (!known) {
    return bad("unknown dtype " + dtype.substr(0, 40), name);
  }
  tensor.dtype = *known;
  HFD_TRY(tensor.shape, unsigned_array(info, "shape", name));
  HFD_TRY(const std::vector<std::uint64_t> offsets, unsigned_array(info, "data_offsets", name));
  if (offsets.size() != 2 || offsets[1] < offsets[0]) {
    return bad("data_offsets is not a range", name);
  }
  HFD_TRY(const std::uint64_t bytes, tensor_bytes(tensor));
  if (offsets[1] - offsets[0] != bytes) {
    return bad("data_offsets does not fit shape and dtype", name);
  }
  tensor.range = {offsets[0], bytes};
  return tensor;
}

Result<void> check_metadata(const base::Json& metadata) {
  if (metadata.is_null()) {
    return {};
  }
  const base::Json::Object* members = metadata.as_object();
  if (members == nullptr) {
    return bad("__metadata__ is not an object", "__metadata__");
  }
  for (const auto& [key, value] : *members) {
    if (!value.is_string()) {
      return bad("a metadata value is not a string", key);
    }
  }
  return {};
}

}  // namespace

std::uint64_t Tensor::elements() const {
  std::uint64_t count = 1;
  for (const std::uint64_t dimension : shape) {
    count *= dimension;
  }
  return count;
}

Result<std::uint64_t> header_json_bytes(base::ByteView first_8_bytes, std::uint64_t file_bytes) {
  if (first_8_bytes.size() < 8 || file_bytes < 8) {
    return bad("shorter than a safetensors header", "");
  }
  const auto bytes = base::load_le<std::uint64_t>(first_8_bytes.data());
  if (bytes == 0 || bytes > header_bytes_max || bytes > file_bytes - 8) {
    return bad("no safetensors header: its length is impossible", "");
  }
  return bytes;
}

Result<Header> parse_header(base::ByteView json) {
  // No JSON text holds a NUL; padding with them is what some writers do and the library refuses.
  if (base::as_text(json).find('\0') != std::string_view::npos) {
    return bad("the safetensors header holds a NUL byte", "");
  }
  HFD_TRY(const base::Json document, base::parse_json(json));
  const base::Json::Object* members = document.as_object();
  if (members == nullptr) {
    return bad("the safetensors header is not an object", "");
  }
  Header header;
  header.data_offset = 8 + json.size();
  header.tensors.reserve(members->size());
  for (const auto& [name, info] : *members) {
    if (name == "__metadata__") {
      HFD_TRY_VOID(check_metadata(info));
      continue;
    }
    HFD_TRY(Tensor tensor, parse_tensor(name, info));
    header.tensors.push_back(std::move(tensor));
  }
  // By (begin, end), as the library does: an empty tensor stands before the one at its place.
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const Tensor& a, const Tensor& b) { return a.range < b.range; });
  std::uint64_t end = 0;
  for (Tensor& tensor : header.tensors) {
    if (tensor.range.offset != end) {
      return bad("a hole or an overlap before the tensor", tensor.name);
    }
    end = tensor.range.end();  // range = checked end - begin, so this cannot overflow
    tensor.range.offset += header.data_offset;
  }
  if (end > UINT64_MAX - header.data_offset) {
    return bad("the data section overflows", "");
  }
  header.file_bytes = header.data_offset + end;
  return header;
}

}  // namespace hfd::format
