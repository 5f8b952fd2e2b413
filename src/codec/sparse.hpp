// SPDX-License-Identifier: Apache-2.0
// The sparse mode: few words differ from their source. Idea: the smaller a weight, the more often
// an optimiser step of fixed size flips its last bit, so words are split into classes by the
// exponent of the SOURCE word, and a change is named by its rank among the words of its class: in a
// class of one rate the gaps between changes are geometric, which Rice codes meet within a few per
// cent. Example: class 3 has 1000 words, its words number 17 and 400 changed: gaps 17, 382. Each
// change carries a sign bit and, where not all changes of the class are +-1, |difference| - 1.
// Measured against sorted positions over all words this halves the cost (shared reference codec.md,
// section 3). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "codec/word_kind.hpp"

namespace hfd::codec {

/// One changed word: `rank` among the words of its class, difference modulo the word's size.
struct Change {
  std::uint32_t rank = 0;
  std::uint64_t difference = 0;
};

/// The changes of one run of words, by class.
struct ChangeList {
  std::vector<std::vector<Change>> by_class;
  std::uint64_t count = 0;
  bool complete = true;  ///< false when the limit was reached and the scan stopped
};

/// Compares `target` with `source` (equal sizes, whole words). Stops after `limit` changes.
/// Hot loop: tests/bench/codec_bench.
void find_changes(WordKind kind, const ClassTable& table, base::ByteView source,
                  base::ByteView target, std::uint64_t limit, ChangeList& changes);

/// Appends the coded form of complete changes.
void encode_sparse(WordKind kind, const ClassTable& table, const ChangeList& changes,
                   base::Bytes& out);

/// Rebuilds the target's words from the source's. Sizes are equal and whole words. Damaged input is
/// `corrupt`. Hot loop: tests/bench/codec_bench.
Result<void> decode_sparse(WordKind kind, const ClassTable& table, base::ByteView coded,
                           base::ByteView source, base::ByteSpan out);

}  // namespace hfd::codec
