// SPDX-License-Identifier: Apache-2.0
// Reads a range of a content from start to end with several requests under way, in bounded memory.
// Used by pull and diff. Blocks the caller, who must not be a thread of the rebuilder.
#pragma once

#include <cstdint>

#include "base/file.hpp"
#include "rebuild/rebuilder.hpp"

namespace hfd::api {

/// Gives the bytes of `range` to `sink`, in order. At most window_bytes are held.
inline constexpr std::uint64_t stream_piece_bytes = 1U << 20U;
inline constexpr std::uint64_t stream_window_bytes = 8U << 20U;
Result<void> stream_content(rebuild::Rebuilder& rebuilder, const rebuild::ContentRef& content,
                            ByteRange range, const base::ByteSink& sink);

}  // namespace hfd::api
