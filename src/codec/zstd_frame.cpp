// SPDX-License-Identifier: Apache-2.0
#include "codec/zstd_frame.hpp"

#include <algorithm>
#include <bit>
#include <memory>

#include <zstd.h>

#include "base/check.hpp"

namespace hfd::codec {
namespace {

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// One context per thread: making one costs as much as a small frame, and callers of this pure layer
// have no object of their own to keep it in. No state crosses from one frame to the next.
ZSTD_CCtx* compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  HFD_CHECK(context != nullptr);
  return context.get();
}
ZSTD_DCtx* decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  HFD_CHECK(context != nullptr);
  return context.get();
}

void set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  HFD_CHECK(ZSTD_isError(ZSTD_CCtx_setParameter(context, parameter, value)) == 0);
}

}  // namespace

std::size_t zstd_compress(base::ByteView content, base::ByteView prefix, int level,
                          base::Bytes& out) {
  ZSTD_CCtx* context = compressor();
  HFD_CHECK(ZSTD_isError(ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters)) == 0);
  set(context, ZSTD_c_compressionLevel, level);
  if (!prefix.empty()) {
    const auto log = static_cast<int>(std::bit_width(prefix.size() + content.size()));
    set(context, ZSTD_c_windowLog, std::clamp(log, 17, zstd_window_log_max));
    HFD_CHECK(ZSTD_isError(ZSTD_CCtx_refPrefix(context, prefix.data(), prefix.size())) == 0);
  }
  const std::size_t at = out.size();
  const std::size_t bound = ZSTD_compressBound(content.size());
  out.resize(at + bound);
  const std::size_t size =
      ZSTD_compress2(context, out.data() + at, bound, content.data(), content.size());
  HFD_CHECK(ZSTD_isError(size) == 0);
  out.resize(at + size);
  return size;
}

Result<void> zstd_decompress(base::ByteView frame, base::ByteView prefix, base::ByteSpan out) {
  // A frame of ours always states its content size; anything else is refused before decoding.
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != out.size() ||
      ZSTD_findFrameCompressedSize(frame.data(), frame.size()) != frame.size()) {
    return Error{ErrorCode::corrupt, "a zstd frame has another size than its place"};
  }
  ZSTD_DCtx* context = decompressor();
  HFD_CHECK(ZSTD_isError(ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters)) == 0);
  HFD_CHECK(
      ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, zstd_window_log_max)) == 0);
  if (!prefix.empty()) {
    HFD_CHECK(ZSTD_isError(ZSTD_DCtx_refPrefix(context, prefix.data(), prefix.size())) == 0);
  }
  const std::size_t size =
      ZSTD_decompressDCtx(context, out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0 || size != out.size()) {
    return Error{ErrorCode::corrupt, "a zstd frame is damaged"};
  }
  return {};
}

struct ZstdChain::State {
  std::unique_ptr<ZSTD_CCtx, FreeCompressor> context{ZSTD_createCCtx()};
};

ZstdChain::ZstdChain(int level) : state_(std::make_unique<State>()) {
  HFD_CHECK(state_->context != nullptr);
  set(state_->context.get(), ZSTD_c_compressionLevel, level);
}

ZstdChain::~ZstdChain() = default;

void ZstdChain::append(base::ByteView content, base::Bytes& out) {
  ZSTD_inBuffer input{content.data(), content.size(), 0};
  std::size_t left = 1;
  while (left != 0) {
    const std::size_t at = out.size();
    const std::size_t room = ZSTD_CStreamOutSize();
    out.resize(at + room);
    ZSTD_outBuffer output{out.data() + at, room, 0};
    left = ZSTD_compressStream2(state_->context.get(), &output, &input, ZSTD_e_flush);
    HFD_CHECK(ZSTD_isError(left) == 0);
    out.resize(at + output.pos);
  }
}

Result<void> zstd_decompress_chain(base::ByteView stream, std::uint64_t skip, base::ByteSpan out) {
  ZSTD_DCtx* context = decompressor();
  HFD_CHECK(ZSTD_isError(ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters)) == 0);
  // Chains are written with level 3, whose window is 2 MiB; 8 MiB leaves room.
  HFD_CHECK(ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 23)) == 0);
  ZSTD_inBuffer input{stream.data(), stream.size(), 0};
  base::Bytes dropped(static_cast<std::size_t>(std::min<std::uint64_t>(skip, 1U << 20U)));
  std::uint64_t done = 0;
  const std::uint64_t total = skip + out.size();
  while (done < total) {
    const bool dropping = done < skip;
    ZSTD_outBuffer output{};
    if (dropping) {
      const std::uint64_t room = std::min<std::uint64_t>(skip - done, dropped.size());
      output = {dropped.data(), static_cast<std::size_t>(room), 0};
    } else {
      const auto at = static_cast<std::size_t>(done - skip);
      output = {out.data() + at, out.size() - at, 0};
    }
    const std::size_t used_before = input.pos;
    const std::size_t state = ZSTD_decompressStream(context, &output, &input);
    if (ZSTD_isError(state) != 0 || (output.pos == 0 && input.pos == used_before)) {
      return Error{ErrorCode::corrupt, "a chained zstd stream is damaged or short"};
    }
    done += output.pos;
    if (state == 0 && done < total) {
      return Error{ErrorCode::corrupt, "a chained zstd stream ends early"};
    }
  }
  return {};
}

}  // namespace hfd::codec
