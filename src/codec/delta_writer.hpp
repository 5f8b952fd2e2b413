// SPDX-License-Identifier: Apache-2.0
// The write side: one target file against any number of source files, streamed in bounded memory
// into one delta object. Used by publish and api. Pure: bytes come in through ReadableBytes and go
// out through a sink; threads come from the caller's pool.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hfdeltafs/types.hpp"

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "base/thread_pool.hpp"
#include "codec/delta_reader.hpp"

namespace hfd::codec {

/// A file that the target may be coded against. `reader` may be lazy and slow (a remote file that
/// is rebuilt on demand): the encoder reads headers and only the ranges it maps.
struct SourceFile {
  ContentHash sha256;
  std::string path;  ///< path in its version, for the preference "same path first"
  base::ReadableBytes* reader = nullptr;
};

struct EncodeOptions {
  std::string target_path;  ///< path of the target in its version
  std::uint32_t block_bytes = 256U << 10U;
  std::function<bool()> cancelled =
      {};  ///< asked once per block; true ends the encode with `stale`
};

struct EncodedDelta {
  ContentHash target_sha256;
  std::uint64_t target_bytes = 0;
  ObjectId object;  ///< sha256 of all bytes given to the sink
  std::uint64_t object_bytes = 0;
  ByteRange directory;           ///< directory + footer, at the end of the object
  ContentHash directory_sha256;  ///< sha256 of those bytes: what a manifest vouches for
  std::vector<SourceInfo>
      sources;  ///< only the sources that the delta really uses; empty for an anchor
  std::uint64_t changed_elements = 0;
  std::uint64_t total_elements = 0;
};

/// Encodes `target` against `sources` (may be empty). The target is read once, in order, plus the
/// headers; the object is never larger than zstd -3 of the target + 1 % + 64 bytes. Memory is
/// bounded by a window of blocks, whatever the sizes. `pool` may be shared; the caller's thread
/// must not be one of its threads.
Result<EncodedDelta> encode_delta(base::ReadableBytes& target,
                                  const std::vector<SourceFile>& sources,
                                  const EncodeOptions& options, base::ThreadPool& pool,
                                  const base::ByteSink& out);

}  // namespace hfd::codec
