// SPDX-License-Identifier: Apache-2.0
// The formats that hfdelta is measured against, re-implemented from their descriptions (shared
// reference delta-formats.md sections 1 and 2, codec.md section 1), not their code. All work tensor
// by tensor on two files of one layout, as their projects do. Used by codec_bench only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hfdeltafs/types.hpp"

#include "base/bytes.hpp"

namespace hfd::bench {

/// A tensor of both files: the same range in each.
struct BenchTensor {
  ByteRange range;
  unsigned word_bytes = 1;
};

struct BenchPair {
  std::string name;
  std::string base_path;
  std::string target_path;
  base::Bytes base;
  base::Bytes target;
  std::vector<BenchTensor> tensors;  ///< empty when the layouts differ: tensor formats are skipped
  std::uint64_t data_offset = 0;
};

/// What an encoder made; `parts` in whatever order its decoder wants them.
struct RivalObject {
  std::vector<base::Bytes> parts;
  std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (const base::Bytes& part : parts) {
      sum += part.size();
    }
    return sum;
  }
};

struct Rival {
  std::string name;
  bool needs_layout = true;
  std::function<RivalObject(const BenchPair&)> encode;
  /// `out` has the size of the target and any content: copying the base is part of the work.
  std::function<bool(const BenchPair&, const RivalObject&, base::Bytes& out)> decode;
};

Rival trl_raw();
Rival trl_gap_delta();
Rival slime_xor_zstd1();
Rival bitx_zstd1();
Rival zstd_patch_from();
Rival zstd3_full();

/// xdelta3 as a child process; times include its start and file I/O in the page cache.
struct XdeltaRun {
  std::uint64_t bytes = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;
  bool verified = false;
};
bool xdelta_installed();
XdeltaRun run_xdelta(const BenchPair& pair, const std::string& folder);

}  // namespace hfd::bench
