// SPDX-License-Identifier: Apache-2.0
// Tells when something below a folder changes, with inotify. Part of remote. Sees changes made on
// this host only: changes that other hosts make on a network file system come through polling
// (follow).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "remote/remote.hpp"

namespace hfd::remote {

/// The folder need not exist: its nearest existing ancestor is watched until it does. `changed`
/// runs on the watch's own thread, once for changes that come close together; it must not destroy
/// the watch. nullptr when the system gives no inotify instance.
std::unique_ptr<Watch> watch_folder(const std::string& path, std::function<void()> changed);

}  // namespace hfd::remote
