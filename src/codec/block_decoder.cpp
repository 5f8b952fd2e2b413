// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "codec/block_codec.hpp"
#include "codec/planes.hpp"
#include "codec/sparse.hpp"
#include "codec/zstd_frame.hpp"

namespace hfd::codec {
namespace {

Error damaged(const char* what) { return Error{ErrorCode::corrupt, what}; }

struct CodedSection {
  GroupCoding coding = GroupCoding::nothing;
  base::ByteView data;
};

Result<void> decode_zstd_twice(base::ByteView data, base::ByteSpan out) {
  base::ByteReader reader(data);
  HFD_TRY(const std::uint64_t inner_bytes, reader.varint());
  if (inner_bytes > out.size()) {
    return damaged("an inner zstd frame is impossibly large");
  }
  HFD_TRY(const base::ByteView outer, reader.take(reader.left()));
  base::Bytes inner(static_cast<std::size_t>(inner_bytes));
  HFD_TRY_VOID(zstd_decompress(outer, {}, inner));
  return zstd_decompress(inner, {}, out);
}

/// `source` has out.size() bytes for mapped groups, any number for text, none for literals.
Result<void> decode_group(unsigned group, const ClassTables& tables, const CodedSection& section,
                          base::ByteView source, base::ByteSpan out) {
  const bool mapped = group < group_literal;
  const auto kind =
      group == group_text ? WordKind::w1 : static_cast<WordKind>(group % word_kind_count);
  switch (section.coding) {
    case GroupCoding::nothing:
      if (mapped) {
        std::memcpy(out.data(), source.data(), out.size());
      } else {
        std::memset(out.data(), 0, out.size());
      }
      return {};
    case GroupCoding::sparse:
      if (!mapped) {
        break;
      }
      return decode_sparse(kind, tables.at(group), section.data, source, out);
    case GroupCoding::dense:
      if (!mapped) {
        break;
      }
      return decode_dense(kind, section.data, source, out);
    case GroupCoding::planes: return decode_word_planes(kind, section.data, out);
    case GroupCoding::zstd: return zstd_decompress(section.data, {}, out);
    case GroupCoding::stored:
      if (section.data.size() != out.size()) {
        break;
      }
      std::memcpy(out.data(), section.data.data(), out.size());
      return {};
    case GroupCoding::prefixed:
      if (group != group_text) {
        break;
      }
      return zstd_decompress(section.data, source, out);
    case GroupCoding::zstd_twice: return decode_zstd_twice(section.data, out);
    case GroupCoding::whole: break;
  }
  return damaged("a block has a coding that does not fit its group");
}

/// Number of pieces of a group and the first of them.
struct GroupPieces {
  const Piece* first = nullptr;
  std::size_t count = 0;
};

GroupPieces pieces_of(const BlockLayout& layout, unsigned group) {
  GroupPieces found;
  for (const Piece& piece : layout.pieces) {
    if (piece.group == group) {
      found.first = found.first == nullptr ? &piece : found.first;
      ++found.count;
    }
  }
  return found;
}

Result<void> decode_pieces(const BlockLayout& layout, unsigned group, const ClassTables& tables,
                           const CodedSection& section, base::ByteView source, base::ByteSpan out) {
  const GroupPieces pieces = pieces_of(layout, group);
  if (pieces.count == 1) {
    const Piece& piece = *pieces.first;
    return decode_group(group, tables, section, source.subspan(piece.source_at, piece.source_bytes),
                        out.subspan(piece.at, piece.bytes));
  }
  base::Bytes gathered_source;
  base::Bytes gathered(layout.group_bytes.at(group));
  for (const Piece& piece : layout.pieces) {
    if (piece.group == group) {
      base::append(gathered_source, source.subspan(piece.source_at, piece.source_bytes));
    }
  }
  HFD_TRY_VOID(decode_group(group, tables, section, gathered_source, gathered));
  std::size_t at = 0;
  for (const Piece& piece : layout.pieces) {
    if (piece.group == group) {
      std::memcpy(out.data() + piece.at, gathered.data() + at, piece.bytes);
      at += piece.bytes;
    }
  }
  return {};
}

Result<CodedSection> take_section(base::ByteReader& reader, bool last) {
  CodedSection section;
  HFD_TRY(const auto coding, reader.integer<std::uint8_t>());
  if (coding >= static_cast<unsigned>(GroupCoding::whole)) {
    return damaged("a block has an unknown coding");
  }
  section.coding = static_cast<GroupCoding>(coding);
  if (section.coding != GroupCoding::nothing) {
    std::uint64_t size = reader.left();
    if (!last) {
      HFD_TRY(size, reader.varint());
    }
    HFD_TRY(section.data, reader.take(size));
  }
  return section;
}

}  // namespace

Result<void> decode_payload(const BlockLayout& layout, const ClassTables& tables, BlockMode mode,
                            base::ByteView payload, base::ByteView source, base::ByteSpan out) {
  if (mode == BlockMode::raw && !payload.empty() &&
      payload[0] == static_cast<std::byte>(GroupCoding::whole)) {
    return zstd_decompress(payload.subspan(1), {}, out);
  }
  unsigned last = 0;
  for (unsigned group = 0; group < group_count; ++group) {
    last = layout.group_bytes.at(group) != 0 ? group : last;
  }
  base::ByteReader reader(payload);
  for (unsigned group = 0; group <= last; ++group) {
    if (layout.group_bytes.at(group) == 0) {
      continue;
    }
    HFD_TRY(const CodedSection section, take_section(reader, group == last));
    HFD_TRY_VOID(decode_pieces(layout, group, tables, section, source, out));
  }
  if (reader.left() != 0) {
    return damaged("a block's payload has bytes left over");
  }
  return {};
}

std::uint64_t BlockPlan::source_bytes() const {
  std::uint64_t sum = 0;
  for (const SourceSpan& span : sources) {
    sum += span.range.size;
  }
  return sum;
}

Result<void> decode_block(const DeltaDirectory& directory, const BlockPlan& plan,
                          base::ByteView payload, base::ByteView source, base::ByteSpan out) {
  HFD_CHECK(payload.size() == plan.payload.size && source.size() == plan.source_bytes() &&
            out.size() == plan.target.size);
  const DirectoryData& data = static_cast<const DirectoryView&>(directory).data();
  if (plan.mode == BlockMode::zero) {
    std::memset(out.data(), 0, out.size());
    return {};
  }
  if (plan.mode == BlockMode::same) {
    HFD_CHECK(source.size() == out.size());  // the index page was checked for it
    std::memcpy(out.data(), source.data(), out.size());
  } else if (plan.chained) {
    HFD_TRY_VOID(zstd_decompress_chain(payload, plan.skip_bytes, out));
  } else {
    const bool use_sources = plan.mode != BlockMode::raw;
    const BlockLayout layout = block_layout(data.extents, plan.target, use_sources);
    HFD_TRY_VOID(decode_payload(layout, data.tables, plan.mode, payload, source, out));
  }
  const base::Xxh128 hash = base::xxh3_128(out);
  if (!std::equal(plan.hash.begin(), plan.hash.begin() + data.hash_bytes, hash.begin())) {
    return damaged("a rebuilt block's checksum differs: wrong source or damaged delta");
  }
  return {};
}

}  // namespace hfd::codec
