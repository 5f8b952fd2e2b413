// SPDX-License-Identifier: Apache-2.0
// Formats built on zstd: XOR of each tensor (slime), XOR split into byte planes (BitX), and the
// zstd command's own ways (--patch-from, plain).
#include <bit>
#include <cstring>
#include <memory>

#include <zstd.h>

#include "rival.hpp"

namespace hfd::bench {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using Compressor = std::unique_ptr<ZSTD_CCtx, FreeContext>;
using Decompressor = std::unique_ptr<ZSTD_DCtx, FreeContext>;

base::Bytes compress(ZSTD_CCtx* context, base::ByteView bytes) {
  base::Bytes out(ZSTD_compressBound(bytes.size()));
  out.resize(ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size()));
  return out;
}

bool decompress(ZSTD_DCtx* context, const base::Bytes& frame, base::ByteSpan out) {
  return ZSTD_decompressDCtx(context, out.data(), out.size(), frame.data(), frame.size()) ==
         out.size();
}

Compressor compressor(int level) {
  Compressor context(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  return context;
}

void xor_bytes(const std::byte* a, const std::byte* b, std::size_t size, std::byte* out) {
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = a[i] ^ b[i];
  }
}

RivalObject encode_slime(const BenchPair& pair) {
  const Compressor context = compressor(1);
  RivalObject object;
  base::Bytes mixed;
  for (const BenchTensor& tensor : pair.tensors) {
    mixed.resize(static_cast<std::size_t>(tensor.range.size));
    xor_bytes(pair.base.data() + tensor.range.offset, pair.target.data() + tensor.range.offset,
              mixed.size(), mixed.data());
    object.parts.push_back(compress(context.get(), mixed));
  }
  return object;
}

bool decode_slime(const BenchPair& pair, const RivalObject& object, base::Bytes& out) {
  const Decompressor context(ZSTD_createDCtx());
  std::memcpy(out.data(), pair.base.data(), static_cast<std::size_t>(pair.data_offset));
  base::Bytes mixed;
  for (std::size_t t = 0; t < pair.tensors.size(); ++t) {
    const ByteRange range = pair.tensors[t].range;
    mixed.resize(static_cast<std::size_t>(range.size));
    if (!decompress(context.get(), object.parts[t], mixed)) {
      return false;
    }
    xor_bytes(pair.base.data() + range.offset, mixed.data(), mixed.size(),
              out.data() + range.offset);
  }
  return true;
}

/// BitX on 2-byte words: the exponent byte and the sign+mantissa byte of the XOR. Other widths:
/// plain byte planes.
void split(const std::byte* mixed, std::size_t count, unsigned width, std::byte* planes) {
  for (std::size_t i = 0; i < count; ++i) {
    if (width == 2) {
      const auto word = std::rotl(base::load_le<std::uint16_t>(mixed + 2 * i), 1);
      planes[i] = static_cast<std::byte>(word & 0xFFU);
      planes[count + i] = static_cast<std::byte>(word >> 8U);
    } else {
      for (unsigned p = 0; p < width; ++p) {
        planes[p * count + i] = mixed[i * width + p];
      }
    }
  }
}

void join(const std::byte* planes, std::size_t count, unsigned width, const std::byte* from,
          std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    if (width == 2) {
      const auto high = std::to_integer<unsigned>(planes[count + i]);
      const auto low = std::to_integer<unsigned>(planes[i]);
      const auto word = std::rotr(static_cast<std::uint16_t>(high << 8U | low), 1);
      const auto old = base::load_le<std::uint16_t>(from + 2 * i);
      base::store_le(out + 2 * i, static_cast<std::uint16_t>(word ^ old));
    } else {
      for (unsigned p = 0; p < width; ++p) {
        out[i * width + p] = planes[p * count + i] ^ from[i * width + p];
      }
    }
  }
}

RivalObject encode_bitx(const BenchPair& pair) {
  const Compressor context = compressor(1);
  RivalObject object;
  base::Bytes mixed;
  base::Bytes planes;
  for (const BenchTensor& tensor : pair.tensors) {
    mixed.resize(static_cast<std::size_t>(tensor.range.size));
    planes.resize(mixed.size());
    xor_bytes(pair.base.data() + tensor.range.offset, pair.target.data() + tensor.range.offset,
              mixed.size(), mixed.data());
    const std::size_t count = mixed.size() / tensor.word_bytes;
    split(mixed.data(), count, tensor.word_bytes, planes.data());
    for (unsigned p = 0; p < tensor.word_bytes; ++p) {
      object.parts.push_back(
          compress(context.get(), base::ByteView(planes).subspan(p * count, count)));
    }
  }
  return object;
}

bool decode_bitx(const BenchPair& pair, const RivalObject& object, base::Bytes& out) {
  const Decompressor context(ZSTD_createDCtx());
  std::memcpy(out.data(), pair.base.data(), static_cast<std::size_t>(pair.data_offset));
  base::Bytes planes;
  std::size_t part = 0;
  for (const BenchTensor& tensor : pair.tensors) {
    planes.resize(static_cast<std::size_t>(tensor.range.size));
    const std::size_t count = planes.size() / tensor.word_bytes;
    for (unsigned p = 0; p < tensor.word_bytes; ++p) {
      const auto plane = base::ByteSpan(planes).subspan(p * count, count);
      if (!decompress(context.get(), object.parts[part++], plane)) {
        return false;
      }
    }
    join(planes.data(), count, tensor.word_bytes, pair.base.data() + tensor.range.offset,
         out.data() + tensor.range.offset);
  }
  return true;
}

/// As the command does: the old file is a prefix within the window, long-distance matching is on.
RivalObject encode_patch(const BenchPair& pair) {
  const Compressor context = compressor(3);
  const auto log = static_cast<int>(std::bit_width(pair.base.size() + pair.target.size()));
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, log);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_enableLongDistanceMatching, 1);
  ZSTD_CCtx_refPrefix(context.get(), pair.base.data(), pair.base.size());
  RivalObject object;
  object.parts.push_back(compress(context.get(), pair.target));
  return object;
}

bool decode_patch(const BenchPair& pair, const RivalObject& object, base::Bytes& out) {
  const Decompressor context(ZSTD_createDCtx());
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, 31);
  ZSTD_DCtx_refPrefix(context.get(), pair.base.data(), pair.base.size());
  return decompress(context.get(), object.parts[0], out);
}

RivalObject encode_full(const BenchPair& pair) {
  const Compressor context = compressor(3);
  RivalObject object;
  object.parts.push_back(compress(context.get(), pair.target));
  return object;
}

bool decode_full(const BenchPair&, const RivalObject& object, base::Bytes& out) {
  const Decompressor context(ZSTD_createDCtx());
  return decompress(context.get(), object.parts[0], out);
}

}  // namespace

Rival slime_xor_zstd1() { return {"slime_xor_zstd1", true, encode_slime, decode_slime}; }
Rival bitx_zstd1() { return {"bitx_zstd1", true, encode_bitx, decode_bitx}; }
Rival zstd_patch_from() { return {"zstd_patch_from", false, encode_patch, decode_patch}; }
Rival zstd3_full() { return {"zstd3_full", false, encode_full, decode_full}; }

}  // namespace hfd::bench
