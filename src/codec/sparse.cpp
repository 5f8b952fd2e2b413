// SPDX-License-Identifier: Apache-2.0
#include "codec/sparse.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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

/// A block's k is written as its distance to the table's, which must fit one unary code of the reader.
constexpr unsigned gap_distance_max = 15;

unsigned best_gap_k(const std::vector<Change>& changes, unsigned table_k) {
  const unsigned k_min = table_k > gap_distance_max ? table_k - gap_distance_max : 0;
  const unsigned k_max = std::min(table_k + gap_distance_max, rice_k_max);
  const std::uint64_t mean = (changes.back().rank + 1U) / changes.size();
  const auto middle = static_cast<unsigned>(std::bit_width(mean));
  const unsigned first = std::clamp(middle > 2 ? middle - 2 : 0, k_min, k_max);
  unsigned best = first;
  std::uint64_t best_bits = UINT64_MAX;
  for (unsigned k = first; k <= std::clamp(middle, k_min, k_max); ++k) {
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
  const unsigned gap_k = best_gap_k(changes, gap_bits);
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

// Words are looked at in runs of one bit mask.
constexpr std::size_t run_words = 64;

template <class Word>
void load_keys(KeyBits key, const std::byte* words, std::size_t count, std::uint8_t* keys) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = base::load_le<Word>(words + i * sizeof(Word));
    keys[i] = static_cast<std::uint8_t>((word >> key.shift) & key.mask);
  }
}

/// Bit i says that keys[i] is not below `start`; run_words keys.
std::uint64_t mask_from(const std::uint8_t* keys, std::uint8_t start) {
  std::uint64_t mask = 0;
#ifdef __SSE2__
  const __m128i starts = _mm_set1_epi8(static_cast<char>(start));
  for (unsigned i = 0; i < run_words; i += 16) {
    const __m128i part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(keys + i));
    const __m128i not_below = _mm_cmpeq_epi8(_mm_max_epu8(part, starts), part);
    mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(not_below)))
            << i;
  }
#else
  for (unsigned i = 0; i < run_words; ++i) {
    mask |= std::uint64_t{keys[i] >= start ? 1U : 0U} << i;
  }
#endif
  return mask;
}

/// std::popcount is a call into a table on x86-64 without its instruction, which the baseline has
/// not.
std::uint32_t count_bits_of(std::uint64_t bits) {
  bits -= (bits >> 1U) & 0x5555555555555555U;
  bits = (bits & 0x3333333333333333U) + ((bits >> 2U) & 0x3333333333333333U);
  bits = (bits + (bits >> 4U)) & 0x0F0F0F0F0F0F0F0FU;
  return static_cast<std::uint32_t>((bits * 0x0101010101010101U) >> 56U);
}

/// The changes that are still to come of one class.
struct ClassCursor {
  std::uint8_t first_key = 0;
  std::uint32_t gap = 0;  ///< words of the class before the next change
  std::size_t next = 0;
  std::size_t end = 0;
};

/// Applies the changes of one class that fall into a run; bit i of `members` says that word i is of
/// the class.
template <class Word>
void change_run(const ParsedChanges<Word>& parsed, std::uint64_t members, std::byte* words,
                ClassCursor& cursor) {
  std::uint32_t count = count_bits_of(members);
  while (cursor.next < cursor.end && cursor.gap < count) {
    count -= cursor.gap + 1;
    for (; cursor.gap > 0; --cursor.gap) {
      members &= members - 1;
    }
    const auto i = static_cast<std::size_t>(std::countr_zero(members));
    members &= members - 1;
    const auto word = base::load_le<Word>(words + i * sizeof(Word));
    base::store_le(words + i * sizeof(Word),
                   static_cast<Word>(word + parsed.differences[cursor.next]));
    ++cursor.next;
    cursor.gap = cursor.next < cursor.end ? parsed.gaps[cursor.next] : 0;
  }
  cursor.gap -= cursor.next < cursor.end ? count : 0;
}

/// Walks the words once, in runs: a class whose next change lies beyond a run only has the run's
/// count taken off its gap. True when every change found its word.
template <class Word>
bool apply_changes(KeyBits key, const ClassTable& table, const ParsedChanges<Word>& parsed,
                   base::ByteView source, base::ByteSpan out) {
  std::vector<ClassCursor> cursors;
  for (unsigned c = 0; c < table.count(); ++c) {
    ClassCursor cursor;
    cursor.first_key = table.starts[c];
    cursor.next = parsed.first.at(c);
    cursor.end = parsed.first.at(c + 1);
    cursor.gap = cursor.next < cursor.end ? parsed.gaps[cursor.next] : 0;
    cursors.push_back(cursor);
  }
  const std::size_t count = source.size() / sizeof(Word);
  std::array<std::uint8_t, run_words> keys{};
  std::memcpy(out.data(), source.data(), source.size());
  for (std::size_t at = 0; at < count; at += run_words) {
    const std::size_t run = std::min(run_words, count - at);
    load_keys<Word>(key, source.data() + at * sizeof(Word), run, keys.data());
    const std::uint64_t there = run == run_words ? UINT64_MAX : (std::uint64_t{1} << run) - 1;
    std::uint64_t above = 0;  // words of the classes that were seen
    for (std::size_t c = cursors.size(); c-- > 0;) {
      ClassCursor& cursor = cursors[c];
      const std::uint64_t from_class = mask_from(keys.data(), cursor.first_key) & there;
      const std::uint64_t members = from_class & ~above;
      above = from_class;
      change_run(parsed, members, out.data() + at * sizeof(Word), cursor);
    }
  }
  return std::all_of(cursors.begin(), cursors.end(),
                     [](const ClassCursor& cursor) { return cursor.next == cursor.end; });
}

template <class Word>
Result<void> decode(KeyBits key, const ClassTable& table, base::ByteView coded,
                    base::ByteView source, base::ByteSpan out) {
  ParsedChanges<Word> parsed;
  HFD_TRY_VOID(parse_changes(table, coded, source.size() / sizeof(Word), parsed));
  if (!apply_changes(key, table, parsed, source, out)) {
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
