// SPDX-License-Identifier: Apache-2.0
// How commands talk to a daemon: one JSON document each way over a Unix socket in the staging folder.
// Only the owner of the daemon and root are answered. The socket's path stands in status.json.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/mutex.hpp"

namespace hfd::cli {

/// Serves requests on a socket; one thread a connection, few at a time.
class ControlServer {
 public:
  using Answer = std::function<base::Json(const base::Json& request)>;

  static Result<std::unique_ptr<ControlServer>> open(const std::string& folder, Answer answer);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;
  const std::string& path() const { return path_; }

 private:
  ControlServer(base::Fd listener, std::string path, Answer answer);
  void accept_connections();
  void serve(base::Fd connection);

  base::Fd listener_;
  std::string path_;
  Answer answer_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> active_{0};
  std::thread thread_;
  base::Mutex mutex_;
  std::vector<std::thread> workers_ HFD_GUARDED_BY(mutex_);
};

/// Sends a request and waits for the answer. An answer with an "error" member becomes that Error.
Result<base::Json> ask_daemon(const std::string& socket_path, const base::Json& request);
/// The status document of the mount at `folder` (or anywhere below it); not_found when it is none of ours.
Result<base::Json> mount_status(const std::string& folder);
/// mount_status, then ask_daemon on the socket it names.
Result<base::Json> ask_mount(const std::string& folder, const base::Json& request);
/// `{"error":{…}}`, the form in which errors travel.
base::Json error_document(const Error& error);
/// The inverse; an Error of code io when the document says nothing.
Error error_from_document(const base::Json& document);

}  // namespace hfd::cli
