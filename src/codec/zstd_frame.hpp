// SPDX-License-Identifier: Apache-2.0
// The only door to libzstd: single frames, compressed at a level, decompressed into a buffer whose
// size is known beforehand. Frames from the outside are hostile: one that claims another size,
// wants a window beyond its content, or ends early is `corrupt`. Contexts are kept per thread.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.hpp"

namespace hfd::codec {

/// Largest window that a frame may ask for: 2^27 bytes is more than any block plus its prefix.
inline constexpr int zstd_window_log_max = 27;

/// Appends one frame of `content` to `out`. `prefix` (may be empty) is text that the decoder will
/// have too; it must be given to decompress as well. Returns the frame's size.
std::size_t zstd_compress(base::ByteView content, base::ByteView prefix, int level,
                          base::Bytes& out);

/// Decompresses one frame that must fill `out` exactly and be used up exactly.
Result<void> zstd_decompress(base::ByteView frame, base::ByteView prefix, base::ByteSpan out);

/// Compresses a stream in pieces, each ended by a flush, so that a decoder that has the pieces up
/// to number i can rebuild the content up to there.
class ZstdChain {
 public:
  explicit ZstdChain(int level);
  ~ZstdChain();
  ZstdChain(const ZstdChain&) = delete;
  ZstdChain& operator=(const ZstdChain&) = delete;
  /// Appends the coded form of the next piece.
  void append(base::ByteView content, base::Bytes& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Decodes a chain from its start, drops `skip` bytes and fills `out`. The input must be used up
/// and give exactly skip + out.size() bytes.
Result<void> zstd_decompress_chain(base::ByteView stream, std::uint64_t skip, base::ByteSpan out);

}  // namespace hfd::codec
