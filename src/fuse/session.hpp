// SPDX-License-Identifier: Apache-2.0
// One kernel mount of a vfs::FileSystem. Thin: turns requests into calls and answers into replies.
// The only layer that knows libfuse. Kernel notifications go out from a thread of their own that
// holds no locks: they can wait for reads in flight, so no request thread may send them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hfdeltafs/result.hpp"
#include "vfs/file_system.hpp"

namespace hfd::fuse {

struct SessionOptions {
  std::string mount_point;   ///< absolute
  std::string source;        ///< shown in /proc/mounts
  bool read_only = false;
  bool allow_other = false;
};

/// The state of a path as a mount point.
enum class MountPointState {
  missing,
  not_a_folder,
  not_empty,
  dead,      ///< a FUSE mount whose daemon is gone
  mounted,   ///< a live mount of ours
  free,
};
MountPointState look_at_mount_point(const std::string& path);
/// Takes a mount away: umount2 as root, fusermount3 otherwise. busy when somebody uses it and not `lazy`.
Result<void> unmount(const std::string& path, bool lazy);

class Session {
 public:
  /// Mounts. permission when /dev/fuse cannot be used.
  static Result<std::unique_ptr<Session>> mount(vfs::FileSystem& files, const SessionOptions& options);
  virtual ~Session() = default;

  /// Serves requests until the mount is taken away or end() is called. `ready` runs once, when the kernel has
  /// made the first contact.
  virtual Result<void> serve(const std::function<void()>& ready) = 0;
  /// Makes serve() return soon, whatever is open. Any thread.
  virtual void end() = 0;
  /// Tells the kernel that names mean something else now. Returns at once.
  virtual void names_changed(const std::vector<publish::ChangedName>& names) = 0;
};

}  // namespace hfd::fuse
