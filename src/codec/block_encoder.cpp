// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "codec/block_codec.hpp"
#include "codec/planes.hpp"
#include "codec/sparse.hpp"
#include "codec/zstd_frame.hpp"

namespace hfd::codec {
namespace {

// Sparse is not sized beyond this share of changed words: dense is smaller and decodes faster
// there.
constexpr double sparse_share_max = 0.30;
// Dense is not sized below this share: planes of zeros with rare ones never win there.
constexpr double dense_share_min = 0.03;
// Dense decodes several times faster than sparse at such densities, so it wins near ties.
constexpr double dense_advantage = 1.03;
constexpr std::size_t sample_bytes = 16U << 10U;

/// One group's coding and data.
struct Section {
  GroupCoding coding = GroupCoding::nothing;
  base::Bytes data;
};

void keep_smaller(Section& best, GroupCoding coding, base::Bytes& data) {
  if (data.size() < best.data.size()) {
    best.coding = coding;
    best.data.swap(data);
  }
}

/// True when a sample from the middle says that plain zstd beats byte planes clearly enough to be
/// worth sizing: tables of repeats, text in integer tensors.
bool zstd_may_win(WordKind kind, base::ByteView bytes) {
  if (bytes.size() <= 2 * sample_bytes) {
    return true;
  }
  const std::size_t middle = bytes.size() / 2 / 8 * 8;
  const base::ByteView sample = bytes.subspan(middle, sample_bytes);
  base::Bytes as_planes;
  base::Bytes as_bytes;
  encode_word_planes(kind, sample, as_planes);
  zstd_compress(sample, {}, 1, as_bytes);
  return as_bytes.size() < as_planes.size() + as_planes.size() / 20;
}

void try_zstd_levels(base::ByteView bytes, const BlockCodecOptions& options, Section& best) {
  base::Bytes data;
  zstd_compress(bytes, {}, options.literal_level, data);
  const bool repeats = data.size() < bytes.size() / 100;
  const bool text_like = data.size() < bytes.size() * 3 / 4;
  keep_smaller(best, GroupCoding::zstd, data);
  if (options.try_harder && text_like && bytes.size() > 64) {
    data.clear();
    zstd_compress(bytes, {}, 15, data);
    keep_smaller(best, GroupCoding::zstd, data);
  }
  if (repeats && best.coding == GroupCoding::zstd) {
    // A frame of long repeats is itself repetitive: 64 nearly equal block headers in 8 MiB.
    data.clear();
    base::append_varint(data, best.data.size());
    zstd_compress(best.data, {}, 9, data);
    keep_smaller(best, GroupCoding::zstd_twice, data);
  }
}

Section code_literal(WordKind kind, base::ByteView bytes, const BlockCodecOptions& options) {
  Section best;
  if (base::is_zero(bytes)) {
    return best;
  }
  best.coding = GroupCoding::stored;
  best.data.assign(bytes.begin(), bytes.end());
  const bool wide = word_bytes(kind) > 1;
  const bool constant =
      std::all_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b == bytes[0]; });
  if (wide || constant) {
    base::Bytes data;
    encode_word_planes(kind, bytes, data);
    keep_smaller(best, GroupCoding::planes, data);
  }
  if (!constant && (!wide || zstd_may_win(kind, bytes))) {
    try_zstd_levels(bytes, options, best);
  }
  return best;
}

Section code_mapped(WordKind kind, const ClassTable& table, base::ByteView source,
                    base::ByteView target, const BlockCodecOptions& options) {
  Section best;
  if (std::memcmp(source.data(), target.data(), target.size()) == 0) {
    return best;
  }
  const std::size_t words = target.size() / word_bytes(kind);
  const auto limit = static_cast<std::uint64_t>(static_cast<double>(words) * sparse_share_max) + 16;
  ChangeList changes;
  find_changes(kind, table, source, target, limit, changes);
  best.coding = GroupCoding::stored;
  best.data.assign(target.begin(), target.end());
  base::Bytes data;
  if (changes.complete) {
    encode_sparse(kind, table, changes, data);
    keep_smaller(best, GroupCoding::sparse, data);
  }
  const double share = static_cast<double>(changes.count) / static_cast<double>(words);
  if (!changes.complete || share > dense_share_min) {
    data.clear();
    encode_dense(kind, source, target, data);
    if (static_cast<double>(data.size()) <
        dense_advantage * static_cast<double>(best.data.size())) {
      best.coding = GroupCoding::dense;
      best.data.swap(data);
    }
  }
  if (best.data.size() > target.size() / 3) {
    Section literal = code_literal(kind, target, options);
    if (literal.data.size() < best.data.size() && literal.coding != GroupCoding::nothing) {
      return literal;
    }
  }
  return best;
}

Section code_text(base::ByteView prefix, base::ByteView bytes, const BlockCodecOptions& options) {
  Section best = code_literal(WordKind::w1, bytes, options);
  if (!prefix.empty() && best.coding != GroupCoding::nothing) {
    base::Bytes data;
    zstd_compress(bytes, prefix, 9, data);
    if (data.size() < best.data.size() / 2 && data.size() < 4096) {
      data.clear();
      zstd_compress(bytes, prefix, 19, data);
    }
    keep_smaller(best, GroupCoding::prefixed, data);
  }
  return best;
}

/// The bytes of one group: borrowed when they lie together, else gathered into `scratch`.
base::ByteView gather(const BlockLayout& layout, unsigned group, base::ByteView bytes,
                      bool from_source, base::Bytes& scratch) {
  scratch.clear();
  base::ByteView only;
  std::size_t count = 0;
  for (const Piece& piece : layout.pieces) {
    if (piece.group == group) {
      only = from_source ? bytes.subspan(piece.source_at, piece.source_bytes)
                         : bytes.subspan(piece.at, piece.bytes);
      ++count;
    }
  }
  if (count <= 1) {
    return only;
  }
  scratch.reserve(layout.group_bytes.at(group));
  for (const Piece& piece : layout.pieces) {
    if (piece.group == group) {
      base::append(scratch, from_source ? bytes.subspan(piece.source_at, piece.source_bytes)
                                        : bytes.subspan(piece.at, piece.bytes));
    }
  }
  return scratch;
}

Section code_group(const BlockLayout& layout, unsigned group, const ClassTables& tables,
                   base::ByteView source, base::ByteView target, const BlockCodecOptions& options) {
  base::Bytes target_scratch;
  const base::ByteView to = gather(layout, group, target, false, target_scratch);
  if (group >= group_literal && group < group_text) {
    return code_literal(static_cast<WordKind>(group - group_literal), to, options);
  }
  base::Bytes source_scratch;
  const base::ByteView from = gather(layout, group, source, true, source_scratch);
  if (group == group_text) {
    return code_text(from, to, options);
  }
  return code_mapped(static_cast<WordKind>(group), tables.at(group), from, to, options);
}

/// What the sections of a block add up to.
struct Tally {
  bool uses_sources = false;
  bool dense = false;
  bool all_same = true;
};

void tally(unsigned group, GroupCoding coding, Tally& sum) {
  const bool same = group < group_literal && coding == GroupCoding::nothing;
  sum.all_same = sum.all_same && same;
  sum.dense = sum.dense || coding == GroupCoding::dense;
  sum.uses_sources = sum.uses_sources || same || coding == GroupCoding::sparse ||
                     coding == GroupCoding::dense || coding == GroupCoding::prefixed;
}

Tally code_groups(const BlockLayout& layout, const ClassTables& tables, base::ByteView source,
                  base::ByteView target, const BlockCodecOptions& options, base::Bytes& payload) {
  unsigned last = 0;
  for (unsigned group = 0; group < group_count; ++group) {
    last = layout.group_bytes.at(group) != 0 ? group : last;
  }
  Tally sum;
  for (unsigned group = 0; group <= last; ++group) {
    if (layout.group_bytes.at(group) == 0) {
      continue;
    }
    const Section section = code_group(layout, group, tables, source, target, options);
    tally(group, section.coding, sum);
    payload.push_back(static_cast<std::byte>(section.coding));
    if (section.coding != GroupCoding::nothing && group != last) {
      base::append_varint(payload, section.data.size());
    }
    base::append(payload, section.data);
  }
  return sum;
}

/// The layout of the same block without sources.
BlockLayout without_sources(const BlockLayout& layout) {
  BlockLayout literal;
  for (Piece piece : layout.pieces) {
    if (piece.group == group_text) {
      piece.group = group_literal + static_cast<unsigned>(WordKind::w1);
    } else if (piece.group < group_literal) {
      piece.group = static_cast<std::uint8_t>(piece.group + group_literal);
    }
    piece.source_at = 0;
    piece.source_bytes = 0;
    literal.group_bytes.at(piece.group) += piece.bytes;
    if (!literal.pieces.empty() && literal.pieces.back().group == piece.group) {
      literal.pieces.back().bytes += piece.bytes;
    } else {
      literal.pieces.push_back(piece);
    }
  }
  return literal;
}

base::Bytes encode_raw(const BlockLayout& layout, base::ByteView target,
                       const BlockCodecOptions& options) {
  base::Bytes payload;
  code_groups(layout, {}, {}, target, options, payload);
  const bool one_byte_group = layout.pieces.size() == 1 && layout.pieces[0].group == group_literal;
  if (!one_byte_group) {
    // Repeats across groups, or text that a word kind hides: one frame over everything.
    base::Bytes whole{static_cast<std::byte>(GroupCoding::whole)};
    zstd_compress(target, {}, options.literal_level, whole);
    if (whole.size() < payload.size()) {
      return whole;
    }
  }
  return payload;
}

template <class Word>
std::uint64_t count_words(base::ByteView source, base::ByteView target) {
  const std::size_t count = target.size() / sizeof(Word);
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = base::load_le<Word>(source.data() + i * sizeof(Word));
    const auto to = base::load_le<Word>(target.data() + i * sizeof(Word));
    changed += from != to ? 1U : 0U;
  }
  return changed;
}

}  // namespace

CodedBlock encode_block(const BlockLayout& layout, const ClassTables& tables, base::ByteView source,
                        base::ByteView target, const BlockCodecOptions& options) {
  CodedBlock coded;
  if (base::is_zero(target)) {
    coded.mode = BlockMode::zero;
    return coded;
  }
  const bool mapped = !layout.sources.empty();
  if (mapped) {
    const Tally sum = code_groups(layout, tables, source, target, options, coded.payload);
    if (sum.all_same) {
      coded.mode = BlockMode::same;
      coded.payload.clear();
      return coded;
    }
    coded.mode = sum.dense ? BlockMode::dense : BlockMode::sparse;
    if (sum.uses_sources && coded.payload.size() < target.size() / 4) {
      return coded;
    }
  }
  base::Bytes raw = encode_raw(without_sources(layout), target, options);
  if (!mapped || raw.size() <= coded.payload.size()) {
    coded.mode = BlockMode::raw;
    coded.payload = std::move(raw);
  }
  return coded;
}

std::uint64_t count_changed(const BlockLayout& layout, base::ByteView source,
                            base::ByteView target) {
  std::uint64_t changed = 0;
  for (const Piece& piece : layout.pieces) {
    if (piece.group >= group_literal) {
      continue;  // counted from the extent map
    }
    const base::ByteView from = source.subspan(piece.source_at, piece.source_bytes);
    const base::ByteView to = target.subspan(piece.at, piece.bytes);
    switch (word_bytes(static_cast<WordKind>(piece.group))) {
      case 1: changed += count_words<std::uint8_t>(from, to); break;
      case 2: changed += count_words<std::uint16_t>(from, to); break;
      case 4: changed += count_words<std::uint32_t>(from, to); break;
      default: changed += count_words<std::uint64_t>(from, to); break;
    }
  }
  return changed;
}

}  // namespace hfd::codec
