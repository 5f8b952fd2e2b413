// SPDX-License-Identifier: Apache-2.0
#include "codec/content_index.hpp"

#include <algorithm>
#include <array>

#include "base/hash.hpp"

namespace hfd::codec {
namespace {

constexpr std::uint64_t sample_bytes = 4096;
constexpr std::uint64_t window_bytes = 64;
// A window that hundreds of tensors share (zeros, ones) says nothing and would make find() slow.
constexpr std::size_t places_max = 64;

std::uint64_t hash64(base::ByteView bytes) {
  const base::Xxh128 hash = base::xxh3_128(bytes);
  return base::load_le<std::uint64_t>(hash.data());
}

/// Mixes what must be equal for a match into the window's hash.
std::uint64_t key_of(const format::Tensor& tensor, std::size_t window, std::uint64_t hash) {
  std::array<std::byte, 32> text{};
  base::store_le(text.data(), tensor.range.size);
  base::store_le(text.data() + 8, std::uint64_t{window});
  base::store_le(text.data() + 16, hash);
  base::store_le(text.data() + 24, static_cast<std::uint64_t>(tensor.dtype));
  return hash64(text);
}

}  // namespace

Result<WindowHashes> sample_windows(base::ReadableBytes& file, const format::Tensor& tensor) {
  const std::uint64_t bytes = std::min(tensor.range.size, sample_bytes);
  const std::uint64_t middle = (tensor.range.size - bytes) / 2 / window_bytes * window_bytes;
  base::Bytes sample(static_cast<std::size_t>(bytes));
  HFD_TRY_VOID(file.read_at(tensor.range.offset + middle, sample));
  WindowHashes hashes;
  for (std::uint64_t at = 0; at + window_bytes <= bytes; at += window_bytes) {
    hashes.push_back(hash64(base::ByteView(sample).subspan(at, window_bytes)));
  }
  hashes.push_back(hash64(sample));
  return hashes;
}

void ContentIndex::add(const format::Tensor& tensor, TensorPlace place,
                       const WindowHashes& windows) {
  for (std::size_t i = 0; i < windows.size(); ++i) {
    std::vector<TensorPlace>& places = places_[key_of(tensor, i, windows[i])];
    if (places.size() < places_max) {
      places.push_back(place);
    }
  }
}

std::optional<TensorPlace> ContentIndex::find(const format::Tensor& tensor,
                                              const WindowHashes& windows) const {
  std::map<TensorPlace, std::size_t> votes;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const auto places = places_.find(key_of(tensor, i, windows[i]));
    if (places == places_.end()) {
      continue;
    }
    for (const TensorPlace& place : places->second) {
      ++votes[place];
    }
  }
  std::optional<TensorPlace> best;
  std::size_t best_votes = windows.size() / 8;  // fewer are chance: padding, repeated rows
  for (const auto& [place, count] : votes) {
    if (count > best_votes) {
      best = place;
      best_votes = count;
    }
  }
  return best;
}

}  // namespace hfd::codec
