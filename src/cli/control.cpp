// SPDX-License-Identifier: Apache-2.0
#include "cli/control.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/thread_pool.hpp"

namespace hfd::cli {
namespace {

constexpr std::size_t message_bytes_max = 16U << 20U;
constexpr int connections_max = 16;
constexpr const char* socket_name = "control.sock";

/// Addresses are short (108 bytes), folders are not: the folder is reached through /proc/self/fd.
Result<sockaddr_un> address_in(const base::Fd& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + socket_name;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::io, "a socket address is too long", path};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<base::Fd> new_socket() {
  const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (number < 0) {
    return base::os_error(errno, "cannot make", "socket");
  }
  return base::Fd(number);
}

/// Everything until the other side shuts down its writing.
Result<std::string> receive_all(const base::Fd& connection) {
  std::string text;
  std::string piece(64U << 10U, '\0');
  while (text.size() <= message_bytes_max) {
    const ssize_t n = ::recv(connection.get(), piece.data(), piece.size(), 0);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return base::os_error(errno, "cannot receive from", "control socket");
    }
    if (n == 0) {
      return text;
    }
    text.append(piece, 0, static_cast<std::size_t>(n));
  }
  return Error{ErrorCode::corrupt, "a control message is too long"};
}

Result<void> send_all(const base::Fd& connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(connection.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return base::os_error(errno, "cannot send to", "control socket");
    }
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  ::shutdown(connection.get(), SHUT_WR);
  return {};
}

bool may_ask(const base::Fd& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return false;
  }
  return peer.uid == 0 || peer.uid == ::geteuid();
}

ErrorCode code_from_name(const std::string& name) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::io); ++code) {
    if (error_code_name(static_cast<ErrorCode>(code)) == name) {
      return static_cast<ErrorCode>(code);
    }
  }
  return ErrorCode::io;
}

Error error_from(const base::Json& document) {
  const auto text = [&](const char* key) {
    const base::Json* member = document.find(key);
    return member != nullptr && member->as_string() != nullptr ? *member->as_string() : std::string();
  };
  return Error{code_from_name(text("code")), text("message"), text("object"), text("hint")};
}

}  // namespace

base::Json error_document(const Error& error) {
  base::Json inner = base::Json::object();
  inner.set("code", error_code_name(error.code))
      .set("message", error.message)
      .set("object", error.object)
      .set("hint", error.hint);
  return std::move(base::Json::object().set("error", std::move(inner)));
}

Error error_from_document(const base::Json& document) {
  const base::Json* inner = document.find("error");
  return inner == nullptr ? Error{ErrorCode::io, "no answer"} : error_from(*inner);
}

ControlServer::ControlServer(base::Fd listener, std::string path, Answer answer)
    : listener_(std::move(listener)), path_(std::move(path)), answer_(std::move(answer)) {
  thread_ = std::thread([this] {
    base::name_this_thread("hfd-control");
    accept_connections();
  });
}

Result<std::unique_ptr<ControlServer>> ControlServer::open(const std::string& folder, Answer answer) {
  HFD_TRY(const base::Fd folder_fd, base::open_file(folder, O_RDONLY | O_DIRECTORY));
  const std::string path = folder + "/" + socket_name;
  HFD_TRY_VOID(base::remove_file(path));  // the staging lock is ours, so nobody listens there
  HFD_TRY(base::Fd listener, new_socket());
  HFD_TRY(const sockaddr_un address, address_in(folder_fd));
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(listener.get(), connections_max) != 0) {
    return base::os_error(errno, "cannot listen on", path);
  }
  return std::unique_ptr<ControlServer>(new ControlServer(std::move(listener), path, std::move(answer)));  // NOLINT: private constructor
}

ControlServer::~ControlServer() {
  stopping_ = true;
  thread_.join();
  const base::Lock lock(mutex_);
  for (std::thread& worker : workers_) {
    worker.join();
  }
  [[maybe_unused]] const auto removed = base::remove_file(path_);
}

void ControlServer::accept_connections() {
  constexpr int look_around_ms = 200;
  while (!stopping_) {
    pollfd waiting{listener_.get(), POLLIN, 0};
    if (::poll(&waiting, 1, look_around_ms) <= 0) {
      continue;
    }
    base::Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid() || !may_ask(connection) || active_.load() >= connections_max) {
      continue;
    }
    active_.fetch_add(1);
    const base::Lock lock(mutex_);
    if (active_.load() == 1) {
      for (std::thread& worker : workers_) {
        worker.join();  // all of them have ended
      }
      workers_.clear();
    }
    workers_.emplace_back([this, fd = connection.release()] {
      serve(base::Fd(fd));
      active_.fetch_sub(1);
    });
  }
}

void ControlServer::serve(base::Fd connection) {
  base::name_this_thread("hfd-answer");
  const timeval patience{10, 0};
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const auto text = receive_all(connection);
  if (!text.ok()) {
    return;
  }
  const auto request = base::parse_json(base::as_bytes(*text));
  const base::Json answer = request.ok() ? answer_(*request) : error_document(request.error());
  [[maybe_unused]] const auto sent = send_all(connection, answer.dump());
}

Result<base::Json> ask_daemon(const std::string& socket_path, const base::Json& request) {
  const std::size_t slash = socket_path.rfind('/');
  if (slash == std::string::npos) {
    return Error{ErrorCode::invalid_argument, "not a socket path", socket_path};
  }
  HFD_TRY(const base::Fd folder, base::open_file(socket_path.substr(0, slash), O_PATH | O_DIRECTORY));
  HFD_TRY(const base::Fd connection, new_socket());
  HFD_TRY(const sockaddr_un address, address_in(folder));
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return base::os_error(errno, "cannot reach the daemon", socket_path);
  }
  HFD_TRY_VOID(send_all(connection, request.dump()));
  HFD_TRY(const std::string text, receive_all(connection));
  HFD_TRY(base::Json answer, base::parse_json(base::as_bytes(text)).in("the daemon ended without an answer"));
  if (answer.find("error") != nullptr) {
    return error_from_document(answer);
  }
  return answer;
}

Result<base::Json> mount_status(const std::string& folder) {
  // The mount point is the nearest folder upward that has our status file.
  std::string absolute(PATH_MAX, '\0');
  if (::realpath(folder.c_str(), absolute.data()) == nullptr) {
    return base::os_error(errno, "no such folder", folder);
  }
  absolute.resize(std::strlen(absolute.c_str()));
  for (std::string at = absolute; !at.empty(); at.resize(at.rfind('/'))) {
    const std::string status = at + "/.hfdelta/status.json";
    if (::access(status.c_str(), R_OK) == 0) {
      HFD_TRY(const base::Fd fd, base::open_file(status, O_RDONLY));
      base::Bytes text(message_bytes_max);
      HFD_TRY(const std::size_t got, base::read_up_to(fd, 0, text, status));
      return base::parse_json(base::ByteView(text).first(got)).on(status);
    }
    if (at.rfind('/') == std::string::npos) {
      break;
    }
  }
  return Error{ErrorCode::not_found, "not an hfdeltafs mount", folder, "see hfdeltafs status for the mounts there are"};
}

Result<base::Json> ask_mount(const std::string& folder, const base::Json& request) {
  HFD_TRY(const base::Json status, mount_status(folder));
  const base::Json* mounts = status.find("mounts");
  if (mounts == nullptr || mounts->as_array() == nullptr || mounts->as_array()->empty()) {
    return Error{ErrorCode::corrupt, "the status of the mount says nothing", folder};
  }
  HFD_TRY(const std::string socket, mounts->as_array()->front().string_member("control"));
  return ask_daemon(socket, request);
}

}  // namespace hfd::cli
