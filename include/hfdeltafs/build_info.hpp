// SPDX-License-Identifier: Apache-2.0
// Versions of the program and of what it writes.
#pragma once

namespace hfd {

/// "0.1.0"
const char* program_version();
/// Version of the native layout on a remote (`hfdelta/format`).
inline constexpr unsigned layout_version = 0;
/// Version of the delta container (src/codec/FORMAT.md). 0 is free to change.
inline constexpr unsigned delta_format_version = 0;

}  // namespace hfd
