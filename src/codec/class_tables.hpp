// SPDX-License-Identifier: Apache-2.0
// Chooses the classes of the sparse mode for one file from counts over a sample of its blocks.
// Writer only. Pure.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "codec/word_kind.hpp"

namespace hfd::codec {

/// Counts by key of the source word.
struct ChangeHistogram {
  std::array<std::uint64_t, 256> words{};
  std::array<std::uint64_t, 256> changed{};
  std::array<std::uint64_t, 256> changed_by_more{};  ///< by more than one
  std::uint64_t word_count = 0;

  /// Adds one run of words (equal sizes).
  void add(WordKind kind, base::ByteView source, base::ByteView target);
};

/// The table that makes the sampled changes cheapest when coded in blocks of `words_per_block`
/// words. Dynamic programming over key ranges; at most class_count_max classes.
ClassTable choose_classes(const ChangeHistogram& histogram, std::uint64_t words_per_block);

}  // namespace hfd::codec
