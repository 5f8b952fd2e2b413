// SPDX-License-Identifier: Apache-2.0
#include "codec/planes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "codec/zstd_frame.hpp"

namespace hfd::codec {
namespace {

// How one plane is stored: low 2 bits of its header varint; the rest is the stored size.
enum class PlaneCoding : std::uint8_t { stored = 0, zstd = 1, constant = 2 };

constexpr int plane_level = 1;

Error damaged() { return Error{ErrorCode::corrupt, "a block's byte planes are damaged"}; }

void put_header(base::Bytes& out, PlaneCoding coding, std::uint64_t bytes) {
  base::append_varint(out, bytes << 2U | static_cast<std::uint64_t>(coding));
}

void append_plane(base::ByteView plane, base::Bytes& scratch, base::Bytes& out) {
  if (std::all_of(plane.begin(), plane.end(), [&](std::byte b) { return b == plane[0]; })) {
    put_header(out, PlaneCoding::constant, 1);
    out.push_back(plane.empty() ? std::byte{0} : plane[0]);
    return;
  }
  scratch.clear();
  zstd_compress(plane, {}, plane_level, scratch);
  if (scratch.size() < plane.size()) {
    put_header(out, PlaneCoding::zstd, scratch.size());
    base::append(out, scratch);
  } else {
    put_header(out, PlaneCoding::stored, plane.size());
    base::append(out, plane);
  }
}

Result<void> take_plane(base::ByteReader& reader, base::ByteSpan plane) {
  HFD_TRY(const std::uint64_t header, reader.varint());
  HFD_TRY(const base::ByteView stored, reader.take(header >> 2U));
  switch (static_cast<PlaneCoding>(header & 3U)) {
    case PlaneCoding::stored:
      if (stored.size() != plane.size()) {
        return damaged();
      }
      std::copy(stored.begin(), stored.end(), plane.begin());
      return {};
    case PlaneCoding::zstd: return zstd_decompress(stored, {}, plane);
    case PlaneCoding::constant:
      if (stored.size() != 1) {
        return damaged();
      }
      std::fill(plane.begin(), plane.end(), stored[0]);
      return {};
  }
  return damaged();
}

template <class Word>
Word fold(Word difference) {
  constexpr unsigned top = 8 * sizeof(Word) - 1;
  const auto sign = static_cast<Word>(Word{0} - static_cast<Word>(difference >> top));
  return static_cast<Word>(static_cast<Word>(difference << 1U) ^ sign);
}
template <class Word>
Word unfold(Word folded) {
  const auto sign = static_cast<Word>(Word{0} - static_cast<Word>(folded & 1U));
  return static_cast<Word>(static_cast<Word>(folded >> 1U) ^ sign);
}

// The four loops below touch every byte of dense and raw blocks; planes lie one after the other.
template <class Word>
void split_difference(const std::byte* source, const std::byte* target, std::size_t count,
                      std::byte* planes) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = base::load_le<Word>(source + i * sizeof(Word));
    const auto to = base::load_le<Word>(target + i * sizeof(Word));
    const Word folded = fold(static_cast<Word>(to - from));
    for (unsigned p = 0; p < sizeof(Word); ++p) {
      planes[p * count + i] = static_cast<std::byte>(folded >> (8 * p));
    }
  }
}
template <class Word>
Word gather_word(const std::byte* planes, std::size_t count, std::size_t i) {
  std::uint64_t word = 0;
  for (unsigned p = 0; p < sizeof(Word); ++p) {
    word |= std::to_integer<std::uint64_t>(planes[p * count + i]) << (8 * p);
  }
  return static_cast<Word>(word);
}
template <class Word>
void join_difference(const std::byte* planes, const std::byte* source, std::size_t count,
                     std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto from = base::load_le<Word>(source + i * sizeof(Word));
    const Word difference = unfold(gather_word<Word>(planes, count, i));
    base::store_le(out + i * sizeof(Word), static_cast<Word>(from + difference));
  }
}
template <class Word>
void split_words(const std::byte* words, std::size_t count, int rotation, std::byte* planes) {
  for (std::size_t i = 0; i < count; ++i) {
    const Word word = std::rotl(base::load_le<Word>(words + i * sizeof(Word)), rotation);
    for (unsigned p = 0; p < sizeof(Word); ++p) {
      planes[p * count + i] = static_cast<std::byte>(word >> (8 * p));
    }
  }
}
template <class Word>
void join_words(const std::byte* planes, std::size_t count, int rotation, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    base::store_le(out + i * sizeof(Word),
                   std::rotr(gather_word<Word>(planes, count, i), rotation));
  }
}

int rotation_of(WordKind kind) { return kind == WordKind::bf16 || kind == WordKind::f32 ? 1 : 0; }

void append_planes(const base::Bytes& planes, unsigned width, base::Bytes& out) {
  const std::size_t count = planes.size() / width;
  base::Bytes scratch;
  for (unsigned p = 0; p < width; ++p) {
    append_plane(base::ByteView(planes).subspan(p * count, count), scratch, out);
  }
}

Result<base::Bytes> take_planes(base::ByteView coded, unsigned width, std::size_t bytes) {
  base::Bytes planes(bytes);
  const std::size_t count = bytes / width;
  base::ByteReader reader(coded);
  for (unsigned p = 0; p < width; ++p) {
    HFD_TRY_VOID(take_plane(reader, base::ByteSpan(planes).subspan(p * count, count)));
  }
  if (reader.left() != 0) {
    return damaged();
  }
  return planes;
}

}  // namespace

void encode_dense(WordKind kind, base::ByteView source, base::ByteView target, base::Bytes& out) {
  base::Bytes planes(source.size());
  const unsigned width = word_bytes(kind);
  const std::size_t count = source.size() / width;
  const std::byte* from = source.data();
  const std::byte* to = target.data();
  switch (width) {
    case 1: split_difference<std::uint8_t>(from, to, count, planes.data()); break;
    case 2: split_difference<std::uint16_t>(from, to, count, planes.data()); break;
    case 4: split_difference<std::uint32_t>(from, to, count, planes.data()); break;
    default: split_difference<std::uint64_t>(from, to, count, planes.data()); break;
  }
  append_planes(planes, width, out);
}

Result<void> decode_dense(WordKind kind, base::ByteView coded, base::ByteView source,
                          base::ByteSpan out) {
  const unsigned width = word_bytes(kind);
  HFD_TRY(const base::Bytes planes, take_planes(coded, width, out.size()));
  const std::size_t count = out.size() / width;
  const std::byte* from = source.data();
  switch (width) {
    case 1: join_difference<std::uint8_t>(planes.data(), from, count, out.data()); break;
    case 2: join_difference<std::uint16_t>(planes.data(), from, count, out.data()); break;
    case 4: join_difference<std::uint32_t>(planes.data(), from, count, out.data()); break;
    default: join_difference<std::uint64_t>(planes.data(), from, count, out.data()); break;
  }
  return {};
}

void encode_word_planes(WordKind kind, base::ByteView words, base::Bytes& out) {
  base::Bytes planes(words.size());
  const unsigned width = word_bytes(kind);
  const std::size_t count = words.size() / width;
  const int rotation = rotation_of(kind);
  switch (width) {
    case 1: split_words<std::uint8_t>(words.data(), count, rotation, planes.data()); break;
    case 2: split_words<std::uint16_t>(words.data(), count, rotation, planes.data()); break;
    case 4: split_words<std::uint32_t>(words.data(), count, rotation, planes.data()); break;
    default: split_words<std::uint64_t>(words.data(), count, rotation, planes.data()); break;
  }
  append_planes(planes, width, out);
}

Result<void> decode_word_planes(WordKind kind, base::ByteView coded, base::ByteSpan out) {
  const unsigned width = word_bytes(kind);
  HFD_TRY(const base::Bytes planes, take_planes(coded, width, out.size()));
  const std::size_t count = out.size() / width;
  const int rotation = rotation_of(kind);
  switch (width) {
    case 1: join_words<std::uint8_t>(planes.data(), count, rotation, out.data()); break;
    case 2: join_words<std::uint16_t>(planes.data(), count, rotation, out.data()); break;
    case 4: join_words<std::uint32_t>(planes.data(), count, rotation, out.data()); break;
    default: join_words<std::uint64_t>(planes.data(), count, rotation, out.data()); break;
  }
  return {};
}

}  // namespace hfd::codec
