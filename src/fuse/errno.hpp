// SPDX-License-Identifier: Apache-2.0
// Error -> errno, at one place. Never ENOSYS (the kernel would remember it for ever) and never EAGAIN
// (a plain reader takes it for a failure).
#pragma once

#include "hfdeltafs/result.hpp"

namespace hfd::fuse {

/// For operations on names and attributes. os_errno wins when a layer below set it.
int errno_of(const Error& error);
/// For read(): an object that is missing or damaged is EIO, whatever the layers below call it.
int read_errno_of(const Error& error);

}  // namespace hfd::fuse
