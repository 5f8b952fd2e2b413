// SPDX-License-Identifier: Apache-2.0
// Cost of putting keys a..b into one class = the entropy of "changed or not" at the class's common
// rate (times the loss of Rice codes), plus a flag bit or so per change when some change by more
// than one, plus the class's header in every block. The best split into at most K ranges is found
// by dynamic programming: best[k][b] = min over a of best[k-1][a-1] + cost(a, b).
#include "codec/class_tables.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace hfd::codec {
namespace {

constexpr double header_bits_per_class = 7.0;  // count, gap parameter and flags of one block
constexpr double rice_loss = 1.03;             // Rice against the entropy, measured 2..4 %

template <class Word>
void count_words(KeyBits key, base::ByteView source, base::ByteView target,
                 ChangeHistogram& histogram) {
  const std::size_t count = source.size() / sizeof(Word);
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = base::load_le<Word>(source.data() + i * sizeof(Word));
    const auto to = base::load_le<Word>(target.data() + i * sizeof(Word));
    const auto k = static_cast<std::size_t>((from >> key.shift) & key.mask);
    ++histogram.words.at(k);
    if (from != to) {
      ++histogram.changed.at(k);
      const auto difference = static_cast<Word>(to - from);
      if (difference != 1 && difference != static_cast<Word>(Word{0} - Word{1})) {
        ++histogram.changed_by_more.at(k);
      }
    }
  }
  histogram.word_count += count;
}

struct Sums {
  std::array<double, 257> words{};
  std::array<double, 257> changed{};
  std::array<double, 257> more{};
};

double entropy_bits(double part, double whole) {
  if (part <= 0 || part >= whole) {
    return 0;
  }
  const double p = part / whole;
  return -whole * (p * std::log2(p) + (1 - p) * std::log2(1 - p));
}

/// Bits for keys [a, b) as one class.
double range_cost(const Sums& sums, std::size_t a, std::size_t b, double blocks) {
  const double words = sums.words.at(b) - sums.words.at(a);
  const double changed = sums.changed.at(b) - sums.changed.at(a);
  const double more = sums.more.at(b) - sums.more.at(a);
  double bits = rice_loss * entropy_bits(changed, words);
  if (more > 0) {
    bits += changed + 2 * more;
  }
  return bits + blocks * (changed > 0 ? header_bits_per_class : 1.0);
}

/// First keys of the cheapest split.
std::vector<std::uint8_t> best_split(const Sums& sums, double blocks) {
  constexpr std::size_t keys = 256;
  std::vector<double> costs(keys * (keys + 1));
  for (std::size_t a = 0; a < keys; ++a) {
    for (std::size_t b = a + 1; b <= keys; ++b) {
      costs[a * (keys + 1) + b] = range_cost(sums, a, b, blocks);
    }
  }
  std::vector<std::array<double, keys + 1>> best(class_count_max + 1);
  std::vector<std::array<std::uint16_t, keys + 1>> from(class_count_max + 1);
  for (auto& row : best) {
    row.fill(1e300);
  }
  best[0][0] = 0;
  std::size_t best_count = 1;
  for (std::size_t k = 1; k <= class_count_max; ++k) {
    for (std::size_t b = 1; b <= keys; ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        const double cost = best[k - 1].at(a) + costs[a * (keys + 1) + b];
        if (cost < best[k].at(b)) {
          best[k].at(b) = cost;
          from[k].at(b) = static_cast<std::uint16_t>(a);
        }
      }
    }
    if (best[k].at(keys) < best[best_count].at(keys)) {
      best_count = k;
    }
  }
  std::vector<std::uint8_t> starts(best_count);
  std::size_t end = keys;
  for (std::size_t k = best_count; k > 0; --k) {
    end = from[k].at(end);
    starts[k - 1] = static_cast<std::uint8_t>(end);
  }
  return starts;
}

std::uint8_t rice_parameter(double mean) {
  // 0.69 * mean is where a geometric distribution's best parameter changes.
  const auto scaled = static_cast<std::uint64_t>(std::max(0.0, 0.69 * mean));
  return static_cast<std::uint8_t>(std::min(static_cast<unsigned>(std::bit_width(scaled)), 24U));
}

}  // namespace

void ChangeHistogram::add(WordKind kind, base::ByteView source, base::ByteView target) {
  const KeyBits key = key_bits(kind);
  switch (word_bytes(kind)) {
    case 1: count_words<std::uint8_t>(key, source, target, *this); break;
    case 2: count_words<std::uint16_t>(key, source, target, *this); break;
    case 4: count_words<std::uint32_t>(key, source, target, *this); break;
    default: count_words<std::uint64_t>(key, source, target, *this); break;
  }
}

ClassTable choose_classes(const ChangeHistogram& histogram, std::uint64_t words_per_block) {
  ClassTable table;
  if (histogram.word_count == 0) {
    return table;
  }
  Sums sums;
  for (std::size_t key = 0; key < 256; ++key) {
    sums.words.at(key + 1) = sums.words.at(key) + static_cast<double>(histogram.words.at(key));
    sums.changed.at(key + 1) =
        sums.changed.at(key) + static_cast<double>(histogram.changed.at(key));
    sums.more.at(key + 1) =
        sums.more.at(key) + static_cast<double>(histogram.changed_by_more.at(key));
  }
  const double blocks = static_cast<double>(histogram.word_count) /
                        static_cast<double>(std::max<std::uint64_t>(words_per_block, 1));
  table.starts = best_split(sums, blocks);
  const std::size_t classes = table.starts.size();
  table.gap_bits.assign(classes, 0);
  table.count_bits.assign(classes, 0);
  for (std::size_t c = 0; c < classes; ++c) {
    const std::size_t a = table.starts[c];
    const std::size_t b = c + 1 < classes ? table.starts[c + 1] : 256U;
    const double words = sums.words.at(b) - sums.words.at(a);
    const double changed = sums.changed.at(b) - sums.changed.at(a);
    table.gap_bits[c] = changed > 0 ? rice_parameter(words / changed) : std::uint8_t{0};
    table.count_bits[c] = rice_parameter(changed / std::max(blocks, 1.0) / 2);
  }
  return table;
}

}  // namespace hfd::codec
