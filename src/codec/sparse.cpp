// SPDX-License-Identifier: Apache-2.0
#include "codec/sparse.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/rice.hpp"

namespace hfd::codec {
namespace {

template <class Word>
std::uint64_t magnitude(std::uint64_t difference) {
  const auto word = static_cast<Word>(difference);
  const bool negative = (word >> (8 * sizeof(Word) - 1)) != 0;
  return negative ? static_cast<Word>(Word{0} - word) : word;
}

std::uint64_t magnitude_of(unsigned width, std::uint64_t difference) {
  switch (width) {
    case 1: return magnitude<std::uint8_t>(difference);
    case 2: return magnitude<std::uint16_t>(difference);
    case 4: return magnitude<std::uint32_t>(difference);
    default: return magnitude<std::uint64_t>(difference);
  }
}

bool is_negative(unsigned width, std::uint64_t difference) {
  return ((difference >> (8 * width - 1)) & 1U) != 0;
}

template <class Word>
void scan(KeyBits key, const std::array<std::uint8_t, 256>& classes, base::ByteView source,
          base::ByteView target, std::uint64_t limit, ChangeList& changes) {
  std::array<std::uint32_t, class_count_max> ranks{};
  const std::size_t count = source.size() / sizeof(Word);
  const std::byte* from = source.data();
  const std::byte* to = target.data();
  for (std::size_t i = 0; i < count; ++i) {
    const auto old_word = base::load_le<Word>(from + i * sizeof(Word));
    const auto new_word = base::load_le<Word>(to + i * sizeof(Word));
    const std::uint8_t c = classes[(old_word >> key.shift) & key.mask];  // NOLINT: mask <= 255
    if (old_word != new_word) {
      if (changes.count == limit) {
        changes.complete = false;
        return;
      }
      changes.by_class[c].push_back({ranks[c], static_cast<Word>(new_word - old_word)});
      ++changes.count;
    }
    ++ranks[c];  // NOLINT(cppcoreguidelines-pro-bounds-constant-array-index): c < class_count_max
  }
}

/// Cost in bits of all gaps with parameter k.
std::uint64_t gap_cost(const std::vector<Change>& changes, unsigned k) {
  std::uint64_t bits = 0;
  std::uint32_t next = 0;
  for (const Change& change : changes) {
    bits += rice_bits(change.rank - next, k, false);
    next = change.rank + 1;
  }
  return bits;
}

unsigned best_gap_k(const std::vector<Change>& changes) {
  const std::uint64_t mean = (changes.back().rank + 1U) / changes.size();
  const auto middle = static_cast<unsigned>(std::bit_width(mean));
  unsigned best = 0;
  std::uint64_t best_bits = UINT64_MAX;
  for (unsigned k = middle > 2 ? middle - 2 : 0; k <= std::min(middle, rice_k_max); ++k) {
    const std::uint64_t bits = gap_cost(changes, k);
    if (bits < best_bits) {
      best_bits = bits;
      best = k;
    }
  }
  return best;
}

unsigned best_magnitude_k(const std::vector<Change>& changes, unsigned width) {
  unsigned best = 0;
  std::uint64_t best_bits = UINT64_MAX;
  for (unsigned k = 0; k < 8 * width && k <= rice_k_max; ++k) {
    std::uint64_t bits = 0;
    for (const Change& change : changes) {
      bits += rice_bits(magnitude_of(width, change.difference) - 1, k, width == 8);
    }
    if (bits < best_bits) {
      best_bits = bits;
      best = k;
    } else {
      break;  // the cost falls and then rises; the small dents of escapes do not matter
    }
  }
  return best;
}

unsigned zigzag(int value) {
  return value < 0 ? static_cast<unsigned>(-2 * value - 1) : static_cast<unsigned>(2 * value);
}

void encode_class(const std::vector<Change>& changes, unsigned width, unsigned gap_bits,
                  BitWriter& writer) {
  const unsigned gap_k = best_gap_k(changes);
  writer.put_unary(zigzag(static_cast<int>(gap_k) - static_cast<int>(gap_bits)));
  const bool all_ones = std::all_of(changes.begin(), changes.end(), [width](const Change& change) {
    return magnitude_of(width, change.difference) == 1;
  });
  writer.put(all_ones ? 1 : 0, 1);
  const unsigned magnitude_k = all_ones ? 0 : best_magnitude_k(changes, width);
  if (!all_ones) {
    writer.put(magnitude_k, 5);
  }
  std::uint32_t next = 0;
  for (const Change& change : changes) {
    put_rice(writer, change.rank - next, gap_k, false);
    next = change.rank + 1;
    writer.put(is_negative(width, change.difference) ? 1 : 0, 1);
    if (!all_ones) {
      put_rice(writer, magnitude_of(width, change.difference) - 1, magnitude_k, width == 8);
    }
  }
}

/// The changes of all classes one after the other; class c owns [first[c], first[c + 1]).
template <class Word>
struct ParsedChanges {
  std::vector<std::uint32_t, base::UninitialisedAllocator<std::uint32_t>> gaps;
  std::vector<Word, base::UninitialisedAllocator<Word>> differences;
  std::array<std::size_t, class_count_max + 1> first{};
};

Error damaged() { return Error{ErrorCode::corrupt, "a sparse block is damaged"}; }

/// Reads the changes of one class. `gap` as stored (0 = the very next word of the class).
template <class Word>
Result<void> parse_class(BitReader& reader, unsigned gap_bits, std::size_t count,
                         ParsedChanges<Word>& parsed) {
  const unsigned folded = reader.take_unary(31);
  const unsigned gap_k = (folded & 1U) != 0 ? gap_bits - (folded + 1) / 2 : gap_bits + folded / 2;
  if (gap_k > rice_k_max) {
    return damaged();
  }
  const bool all_ones = reader.take(1) != 0;
  const auto magnitude_k = all_ones ? 0U : static_cast<unsigned>(reader.take(5));
  constexpr bool wide = sizeof(Word) == 8;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t gap = take_rice(reader, gap_k, false);
    const bool negative = reader.take(1) != 0;
    const std::uint64_t beyond_one = all_ones ? 0 : take_rice(reader, magnitude_k, wide);
    const auto difference = static_cast<Word>(beyond_one + 1);
    // The escape holds 32 bits and k <= 31 with quotient < 20 at most 2^36: cut to what a rank
    // holds.
    parsed.gaps.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(gap, UINT32_MAX)));
    parsed.differences.push_back(negative ? static_cast<Word>(Word{0} - difference) : difference);
  }
  return {};
}

template <class Word>
Result<void> parse_changes(const ClassTable& table, base::ByteView coded, std::size_t word_count,
                           ParsedChanges<Word>& parsed) {
  BitReader reader(coded);
  std::array<std::size_t, class_count_max> counts{};
  std::size_t total = 0;
  for (unsigned c = 0; c < table.count(); ++c) {
    const std::uint64_t count = take_rice(reader, table.count_bits[c], false);
    if (count > word_count - total) {
      return damaged();
    }
    counts.at(c) = static_cast<std::size_t>(count);
    total += counts.at(c);
  }
  // Each change takes at least 2 bits, so a lying count cannot make us allocate beyond the input.
  if (total > coded.size() * 4) {
    return damaged();
  }
  parsed.gaps.reserve(total);
  parsed.differences.reserve(total);
  for (unsigned c = 0; c < table.count(); ++c) {
    parsed.first.at(c) = parsed.gaps.size();
    if (counts.at(c) > 0) {
      HFD_TRY_VOID(parse_class(reader, table.gap_bits[c], counts.at(c), parsed));
    }
  }
  parsed.first.at(table.count()) = parsed.gaps.size();
  if (reader.overrun() || reader.bytes_left() != 0) {
    return damaged();
  }
  return {};
}

/// Walks the words once, counting down to the next change of each class. True when every change
/// found its word.
template <class Word>
bool apply_changes(KeyBits key, const std::array<std::uint8_t, 256>& classes, unsigned class_count,
                   const ParsedChanges<Word>& parsed, base::ByteView source, base::ByteSpan out) {
  std::array<std::uint32_t, 256> left{};
  std::array<std::size_t, class_count_max> next{};
  std::size_t open = parsed.gaps.size();
  for (unsigned c = 0; c < class_count; ++c) {
    next.at(c) = parsed.first.at(c);
    left.at(c) = next.at(c) < parsed.first.at(c + 1) ? parsed.gaps[next.at(c)] : UINT32_MAX;
  }
  const std::size_t count = source.size() / sizeof(Word);
  const std::byte* from = source.data();
  std::byte* to = out.data();
  std::memcpy(to, from, source.size());
  for (std::size_t i = 0; i < count && open > 0; ++i) {
    const auto word = base::load_le<Word>(from + i * sizeof(Word));
    const std::uint8_t c = classes[(word >> key.shift) & key.mask];  // NOLINT: mask <= 255
    if (left[c]-- != 0) {                                            // NOLINT: c < class_count_max
      continue;
    }
    const std::size_t change = next[c]++;  // NOLINT: as above
    base::store_le(to + i * sizeof(Word), static_cast<Word>(word + parsed.differences[change]));
    left[c] = change + 1 < parsed.first[c + 1U] ? parsed.gaps[change + 1] : UINT32_MAX;  // NOLINT
    --open;
  }
  return open == 0;
}

template <class Word>
Result<void> decode(KeyBits key, const ClassTable& table, base::ByteView coded,
                    base::ByteView source, base::ByteSpan out) {
  ParsedChanges<Word> parsed;
  HFD_TRY_VOID(parse_changes(table, coded, source.size() / sizeof(Word), parsed));
  if (!apply_changes(key, table.lookup(), table.count(), parsed, source, out)) {
    return damaged();
  }
  return {};
}

}  // namespace

void find_changes(WordKind kind, const ClassTable& table, base::ByteView source,
                  base::ByteView target, std::uint64_t limit, ChangeList& changes) {
  changes.by_class.resize(table.count());
  for (std::vector<Change>& list : changes.by_class) {
    list.clear();
  }
  changes.count = 0;
  changes.complete = true;
  const std::array<std::uint8_t, 256> classes = table.lookup();
  const KeyBits key = key_bits(kind);
  switch (word_bytes(kind)) {
    case 1: scan<std::uint8_t>(key, classes, source, target, limit, changes); break;
    case 2: scan<std::uint16_t>(key, classes, source, target, limit, changes); break;
    case 4: scan<std::uint32_t>(key, classes, source, target, limit, changes); break;
    default: scan<std::uint64_t>(key, classes, source, target, limit, changes); break;
  }
}

void encode_sparse(WordKind kind, const ClassTable& table, const ChangeList& changes,
                   base::Bytes& out) {
  BitWriter writer(out);
  for (unsigned c = 0; c < table.count(); ++c) {
    put_rice(writer, changes.by_class[c].size(), table.count_bits[c], false);
  }
  for (unsigned c = 0; c < table.count(); ++c) {
    if (!changes.by_class[c].empty()) {
      encode_class(changes.by_class[c], word_bytes(kind), table.gap_bits[c], writer);
    }
  }
  writer.finish();
}

Result<void> decode_sparse(WordKind kind, const ClassTable& table, base::ByteView coded,
                           base::ByteView source, base::ByteSpan out) {
  const KeyBits key = key_bits(kind);
  switch (word_bytes(kind)) {
    case 1: return decode<std::uint8_t>(key, table, coded, source, out);
    case 2: return decode<std::uint16_t>(key, table, coded, source, out);
    case 4: return decode<std::uint32_t>(key, table, coded, source, out);
    default: return decode<std::uint64_t>(key, table, coded, source, out);
  }
}

}  // namespace hfd::codec
