// SPDX-License-Identifier: Apache-2.0
// The table of low-level operations. Each is noexcept towards libfuse and contains no logic beyond
// forwarding to the vfs. Private to src/fuse.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <functional>

#include "vfs/file_system.hpp"

namespace hfd::fuse {

/// What libfuse carries as userdata.
struct Context {
  vfs::FileSystem* files = nullptr;
  std::function<void()> ready;
};

const fuse_lowlevel_ops& operations();

}  // namespace hfd::fuse
