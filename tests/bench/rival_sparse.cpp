// SPDX-License-Identifier: Apache-2.0
// TRL's sparse formats: indices and absolute new values of the changed elements of each tensor.
#include <cstring>

#include "rival.hpp"

namespace hfd::bench {
namespace {

/// Calls visit(index, new word) for each changed word.
template <class Word, class Visit>
void for_changed(const BenchPair& pair, const BenchTensor& tensor, Visit visit) {
  const std::byte* from = pair.base.data() + tensor.range.offset;
  const std::byte* to = pair.target.data() + tensor.range.offset;
  const std::size_t count = static_cast<std::size_t>(tensor.range.size) / sizeof(Word);
  for (std::size_t i = 0; i < count; ++i) {
    const auto before = base::load_le<Word>(from + i * sizeof(Word));
    const auto after = base::load_le<Word>(to + i * sizeof(Word));
    if (before != after) {
      visit(static_cast<std::uint32_t>(i), after);
    }
  }
}

template <class Word>
void collect(const BenchPair& pair, const BenchTensor& tensor, std::vector<std::uint32_t>& indices,
             base::Bytes& values) {
  indices.clear();
  values.clear();
  for_changed<Word>(pair, tensor, [&](std::uint32_t index, Word word) {
    indices.push_back(index);
    base::append_le(values, word);
  });
}

void collect_any(const BenchPair& pair, const BenchTensor& tensor,
                 std::vector<std::uint32_t>& indices, base::Bytes& values) {
  switch (tensor.word_bytes) {
    case 1: collect<std::uint8_t>(pair, tensor, indices, values); break;
    case 2: collect<std::uint16_t>(pair, tensor, indices, values); break;
    case 4: collect<std::uint32_t>(pair, tensor, indices, values); break;
    default: collect<std::uint64_t>(pair, tensor, indices, values); break;
  }
}

/// Writes `count` values at the indices that next() yields.
template <class Next>
void scatter(std::byte* out, unsigned width, const base::Bytes& values, Next next) {
  const std::size_t count = values.size() / width;
  const std::byte* value = values.data();
  if (width == 2) {  // the common case without a variable-size copy
    for (std::size_t i = 0; i < count; ++i, value += 2) {
      std::memcpy(out + next() * 2, value, 2);
    }
    return;
  }
  for (std::size_t i = 0; i < count; ++i, value += width) {
    std::memcpy(out + next() * width, value, width);
  }
}

RivalObject encode_raw(const BenchPair& pair) {
  RivalObject object;
  std::vector<std::uint32_t> indices;
  base::Bytes values;
  for (const BenchTensor& tensor : pair.tensors) {
    collect_any(pair, tensor, indices, values);
    base::Bytes packed(indices.size() * 4);
    if (!indices.empty()) {
      std::memcpy(packed.data(), indices.data(), packed.size());
    }
    object.parts.push_back(std::move(packed));
    object.parts.push_back(values);
  }
  return object;
}

bool decode_raw(const BenchPair& pair, const RivalObject& object, base::Bytes& out) {
  std::memcpy(out.data(), pair.base.data(), out.size());
  for (std::size_t t = 0; t < pair.tensors.size(); ++t) {
    const std::byte* index = object.parts[2 * t].data();
    scatter(out.data() + pair.tensors[t].range.offset, pair.tensors[t].word_bytes,
            object.parts[2 * t + 1], [&] {
              const std::uint64_t at = base::load_le<std::uint32_t>(index);
              index += 4;
              return at;
            });
  }
  return true;
}

/// Gaps as u16, or all as u32 when one does not fit; a leading byte (not counted by TRL, kept in a
/// dtype there) tells which.
template <class Gap>
base::Bytes pack_gaps(const std::vector<std::uint32_t>& gaps) {
  base::Bytes packed(gaps.size() * sizeof(Gap));
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    base::store_le(packed.data() + i * sizeof(Gap), static_cast<Gap>(gaps[i]));
  }
  return packed;
}

RivalObject encode_gaps(const BenchPair& pair) {
  RivalObject object;
  std::vector<std::uint32_t> indices;
  base::Bytes values;
  for (const BenchTensor& tensor : pair.tensors) {
    collect_any(pair, tensor, indices, values);
    std::uint32_t next = 0;
    std::uint32_t largest = 0;
    for (std::uint32_t& index : indices) {
      const std::uint32_t gap = index - next;
      next = index + 1;
      index = gap;
      largest = std::max(largest, gap);
    }
    object.parts.push_back(largest > UINT16_MAX ? pack_gaps<std::uint32_t>(indices)
                                                : pack_gaps<std::uint16_t>(indices));
    object.parts.push_back(values);
  }
  return object;
}

template <class Gap>
void scatter_gaps(std::byte* out, unsigned width, const base::Bytes& gaps,
                  const base::Bytes& values) {
  const std::byte* gap = gaps.data();
  std::uint64_t next = 0;
  scatter(out, width, values, [&] {
    const std::uint64_t at = next + base::load_le<Gap>(gap);
    gap += sizeof(Gap);
    next = at + 1;
    return at;
  });
}

bool decode_gaps(const BenchPair& pair, const RivalObject& object, base::Bytes& out) {
  std::memcpy(out.data(), pair.base.data(), out.size());
  for (std::size_t t = 0; t < pair.tensors.size(); ++t) {
    const BenchTensor& tensor = pair.tensors[t];
    const base::Bytes& gaps = object.parts[2 * t];
    const base::Bytes& values = object.parts[2 * t + 1];
    std::byte* at = out.data() + tensor.range.offset;
    if (gaps.size() * tensor.word_bytes == values.size() * 4) {
      scatter_gaps<std::uint32_t>(at, tensor.word_bytes, gaps, values);
    } else {
      scatter_gaps<std::uint16_t>(at, tensor.word_bytes, gaps, values);
    }
  }
  return true;
}

}  // namespace

Rival trl_raw() { return {"trl_raw", true, encode_raw, decode_raw}; }
Rival trl_gap_delta() { return {"trl_gap_delta", true, encode_gaps, decode_gaps}; }

}  // namespace hfd::bench
