// SPDX-License-Identifier: Apache-2.0
// Whole-object conveniences over delta_reader.hpp: rebuild the target from start to end, and the
// numbers of `delta info`. Used by api, publish and the command line; rebuild goes block by block
// instead. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "codec/delta_reader.hpp"

namespace hfd::codec {

/// Fetches and parses the directory of an object.
Result<std::shared_ptr<const DeltaDirectory>> read_directory(base::ReadableBytes& object);

/// Streams the target to `out`. `sources` stand in the order of the object's directory and their
/// sha256 was checked by the caller; sizes are checked here. The target's sha256 is checked at the
/// end: on any error `out` may have got wrong bytes and the caller must drop them.
Result<void> apply_delta(base::ReadableBytes& object,
                         const std::vector<base::ReadableBytes*>& sources,
                         const base::ByteSink& out);

/// What `delta info` prints.
struct DeltaInfo {
  std::uint32_t format_version = 0;
  std::uint64_t target_bytes = 0;
  ContentHash target_sha256;
  std::vector<SourceInfo> sources;
  std::uint32_t block_bytes = 0;
  std::uint64_t blocks = 0;
  ModeCounts modes;
  std::uint64_t index_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t object_bytes = 0;
  std::uint64_t changed_elements = 0;
  std::uint64_t total_elements = 0;
};

/// Reads directory and all index pages.
Result<DeltaInfo> delta_info(base::ReadableBytes& object);

}  // namespace hfd::codec
