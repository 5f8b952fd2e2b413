// SPDX-License-Identifier: Apache-2.0
// Finds, for a tensor whose name is in no source, the source tensor with the same or nearly the
// same content. Idea: 4 KiB from the middle of each tensor, cut into 64-byte windows; two tensors
// of equal size and dtype that share windows at the same place are versions of each other. With 0.7
// % of words changed four windows of five are unchanged. One small read a tensor, linear in their
// number, where comparing each with each would be quadratic in the layers of a model. Writer only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "format/header.hpp"

namespace hfd::codec {

/// A tensor of a source: source number, tensor number.
struct TensorPlace {
  std::uint32_t source = 0;
  std::uint32_t tensor = 0;
  auto operator<=>(const TensorPlace&) const = default;
};

/// Hashes of the windows of a tensor's sample; the last one is the hash of the whole sample.
using WindowHashes = std::vector<std::uint64_t>;
/// Reads the sample of `tensor`. Precondition: the tensor lies within the file.
Result<WindowHashes> sample_windows(base::ReadableBytes& file, const format::Tensor& tensor);

class ContentIndex {
 public:
  void add(const format::Tensor& tensor, TensorPlace place, const WindowHashes& windows);
  /// The tensor that shares most windows, if it shares enough to be worth a try.
  std::optional<TensorPlace> find(const format::Tensor& tensor, const WindowHashes& windows) const;

 private:
  std::unordered_map<std::uint64_t, std::vector<TensorPlace>> places_;
};

}  // namespace hfd::codec
