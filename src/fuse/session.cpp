// SPDX-License-Identifier: Apache-2.0
#include "fuse/session.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <fstream>
#include <thread>
#include <utility>

#include "base/file.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/thread_pool.hpp"
#include "fuse/operations.hpp"

namespace hfd::fuse {
namespace {

/// Threads that wait on the device. They never wait for a remote, so a few are enough.
constexpr unsigned threads_max = 10;
constexpr unsigned threads_idle_max = 4;
/// Names waiting to be told to the kernel; beyond that, entries simply run out after their second.
constexpr std::size_t changed_names_max = 100'000;

/// The options string splits at commas; a backslash keeps one in a value.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ',' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

/// Mount point and type of a line of /proc/self/mountinfo with octal escapes undone; empty when malformed.
std::pair<std::string, std::string> mount_of_line(const std::string& line) {
  std::vector<std::string> fields;
  std::string field;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i == line.size() || line[i] == ' ') {
      fields.push_back(std::move(field));
      field.clear();
    } else if (line[i] == '\\' && i + 3 < line.size()) {
      field += static_cast<char>((line[i + 1] - '0') * 64 + (line[i + 2] - '0') * 8 + (line[i + 3] - '0'));
      i += 3;
    } else {
      field += line[i];
    }
  }
  for (std::size_t i = 6; i + 1 < fields.size(); ++i) {
    if (fields[i] == "-") {
      return {fields[4], fields[i + 1]};
    }
  }
  return {};
}

/// Type of the file system mounted at exactly `path` (the topmost), empty when none is.
std::string type_mounted_at(const std::string& path) {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string type;
  for (std::string line; std::getline(mounts, line);) {
    const auto [point, kind] = mount_of_line(line);
    if (point == path) {
      type = kind;
    }
  }
  return type;
}

Result<void> run_fusermount(const std::string& path, bool lazy) {
  const pid_t child = ::fork();
  if (child < 0) {
    return base::os_error(errno, "cannot start", "fusermount3");
  }
  if (child == 0) {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(null, 2);
    ::execlp("fusermount3", "fusermount3", lazy ? "-uz" : "-u", "--", path.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Error{ErrorCode::busy, "cannot unmount: fusermount3 refused, perhaps because files are in use", path};
  }
  return {};
}

/// libfuse's own lines go to our log, where they do not stand beside our one line for the user.
void log_line(fuse_log_level /*level*/, const char* format, va_list arguments) {
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::string line = text.data();
  while (!line.empty() && line.back() == '\n') {
    line.pop_back();
  }
  base::log(base::LogLevel::info, "libfuse: " + line);
}

class FuseSession final : public Session {
 public:
  FuseSession(vfs::FileSystem& files, SessionOptions options) : options_(std::move(options)) {
    context_.files = &files;
  }

  ~FuseSession() override {
    stop_notifier();
    if (session_ != nullptr) {
      if (mounted_) {
        fuse_session_unmount(session_);
      }
      fuse_session_destroy(session_);
    }
  }

  Result<void> open() {
    fuse_set_log_func(log_line);
    std::string mount_options = "default_permissions,subtype=hfdeltafs,fsname=" + escaped(options_.source);
    mount_options += options_.allow_other ? ",allow_other" : "";
    mount_options += options_.read_only ? ",ro" : "";
    fuse_args args = FUSE_ARGS_INIT(0, nullptr);
    fuse_opt_add_arg(&args, "hfdeltafs");
    fuse_opt_add_arg(&args, "-o");
    fuse_opt_add_arg(&args, mount_options.c_str());
    session_ = fuse_session_new(&args, &operations(), sizeof(fuse_lowlevel_ops), &context_);
    fuse_opt_free_args(&args);
    if (session_ == nullptr) {
      return Error{ErrorCode::io, "cannot make a FUSE session", options_.mount_point};
    }
    if (fuse_session_mount(session_, options_.mount_point.c_str()) != 0) {
      return Error{ErrorCode::permission, "cannot mount", options_.mount_point,
                   "/dev/fuse must be there and usable; a user needs fusermount3, and user_allow_other in /etc/fuse.conf "
                   "for allow_other"};
    }
    mounted_ = true;
    notifier_ = std::thread([this] {
      base::name_this_thread("hfd-notify");
      notify();
    });
    return {};
  }

  Result<void> serve(const std::function<void()>& ready) override {
    context_.ready = ready;
    fuse_loop_config* config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 0);
    fuse_loop_cfg_set_max_threads(config, threads_max);
    fuse_loop_cfg_set_idle_threads(config, threads_idle_max);
    const int result = fuse_session_loop_mt(session_, config);
    fuse_loop_cfg_destroy(config);
    stop_notifier();
    if (result < 0) {
      return base::os_error(-result, "the FUSE loop failed", options_.mount_point);
    }
    return {};
  }

  void end() override {
    fuse_session_exit(session_);
    // Loop threads sleep in read(); taking the mount away wakes them.
    [[maybe_unused]] const auto gone = unmount(options_.mount_point, true);
  }

  void names_changed(const std::vector<publish::ChangedName>& names) override {
    const base::Lock lock(mutex_);
    if (names_.size() + names.size() <= changed_names_max) {
      // Backwards: a folder that goes comes after what was in it, and hides all of that at once.
      names_.insert(names_.end(), names.rbegin(), names.rend());
    }
    wake_.notify_all();
  }

 private:
  void stop_notifier() {
    {
      const base::Lock lock(mutex_);
      stopping_ = true;
      names_.clear();
      wake_.notify_all();
    }
    if (notifier_.joinable()) {
      notifier_.join();
    }
  }

  void notify() {
    while (true) {
      publish::ChangedName name;
      {
        const base::Lock lock(mutex_);
        while (names_.empty() && !stopping_) {
          wake_.wait(mutex_);
        }
        if (stopping_) {
          return;
        }
        name = std::move(names_.front());
        names_.pop_front();
      }
      // Entries only, never pages: an inode keeps its content. A name that the kernel does not know is fine.
      fuse_lowlevel_notify_inval_entry(session_, name.parent, name.name.c_str(), name.name.size());
    }
  }

  const SessionOptions options_;
  Context context_;
  fuse_session* session_ = nullptr;
  bool mounted_ = false;

  base::Mutex mutex_;
  base::Condition wake_;
  bool stopping_ HFD_GUARDED_BY(mutex_) = false;
  /// Bounded by changed_names_max.
  std::deque<publish::ChangedName> names_ HFD_GUARDED_BY(mutex_);
  std::thread notifier_;
};

}  // namespace

MountPointState look_at_mount_point(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOTCONN || errno == ECONNABORTED) {
      return MountPointState::dead;
    }
    return MountPointState::missing;
  }
  if (!S_ISDIR(status.st_mode)) {
    return MountPointState::not_a_folder;
  }
  if (type_mounted_at(path) == "fuse.hfdeltafs") {
    return MountPointState::mounted;
  }
  const auto names = base::list_folder(path);
  return names.ok() && names->empty() ? MountPointState::free : MountPointState::not_empty;
}

Result<void> unmount(const std::string& path, bool lazy) {
  if (::geteuid() != 0) {
    return run_fusermount(path, lazy);
  }
  if (::umount2(path.c_str(), lazy ? MNT_DETACH : 0) != 0) {
    const int number = errno;
    Error error = base::os_error(number, "cannot unmount", path);
    if (number == EBUSY) {
      error.code = ErrorCode::busy;
      error.hint = "close the files that are in use there";
    }
    return error;
  }
  return {};
}

Result<std::unique_ptr<Session>> Session::mount(vfs::FileSystem& files, const SessionOptions& options) {
  if (::access("/dev/fuse", R_OK | W_OK) != 0) {
    return Error{ErrorCode::permission, "cannot use FUSE: " + std::string(errno == ENOENT ? "it is missing" : "no permission"),
                 "/dev/fuse", "load the fuse module, or give the container --device /dev/fuse and SYS_ADMIN"};
  }
  auto session = std::make_unique<FuseSession>(files, options);
  HFD_TRY_VOID(session->open());
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace hfd::fuse
