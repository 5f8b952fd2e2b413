// SPDX-License-Identifier: Apache-2.0
// The objects below a folder, for FolderRemote. Part of remote.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "remote/remote.hpp"

namespace hfd::remote {

/// Where objects stand until they are whole, at the root of the remote. Never listed.
inline constexpr std::string_view temporary_folder_name = ".hfdelta-tmp";

ObjectInfo object_info(std::string name, const struct stat& status);

/// Regular files below `root`/`prefix`, sorted by name. Symlinks are followed to files (a Hugging
/// Face cache is made of them) and to folders that do not lead back; those that lead nowhere are
/// left out, as are sockets, pipes and devices. Names that vanish while the list is made are left
/// out too.
Result<std::vector<ObjectInfo>> list_objects(const std::string& root, const std::string& prefix);

}  // namespace hfd::remote
