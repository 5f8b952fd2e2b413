// SPDX-License-Identifier: Apache-2.0
#include "remote/folder_watch.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/file.hpp"
#include "base/thread_pool.hpp"

namespace hfd::remote {
namespace {

/// A publish writes a claim and then the hint: one call for both.
constexpr int settle_milliseconds = 10;
/// Refs with slashes are folders in folders; more than this are not watched one by one.
constexpr std::size_t folder_count_max = 1024;
constexpr std::size_t depth_max = 16;
constexpr std::uint32_t events = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                 IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

class FolderWatch final : public Watch {
 public:
  FolderWatch(std::string path, base::Fd notes, base::Fd stop, std::function<void()> changed)
      : path_(std::move(path)),
        notes_(std::move(notes)),
        stop_(std::move(stop)),
        changed_(std::move(changed)) {
    add_watches();  // before the constructor ends: a change right after watch() must not be missed
    thread_ = std::thread([this] { run(); });
  }
  ~FolderWatch() override {
    const std::uint64_t one = 1;
    while (::write(stop_.get(), &one, sizeof one) < 0) {
      // An eventfd at zero takes the write; only a signal can interrupt it.
    }
    thread_.join();
  }

 private:
  void run() {
    base::name_this_thread("hfd-watch");
    while (wait(-1)) {
      drain();
      if (!wait_settled()) {
        return;
      }
      add_watches();  // folders may be new, or the watched one made at last
      changed_();
    }
  }

  /// Waits for events; false when the watch ends.
  bool wait(int timeout_milliseconds) {
    std::array<pollfd, 2> fds{{{notes_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    do {
      fds[0].revents = 0;
      fds[1].revents = 0;
      ::poll(fds.data(), fds.size(), timeout_milliseconds);
    } while (timeout_milliseconds < 0 && fds[0].revents == 0 && fds[1].revents == 0);
    return (fds[1].revents & POLLIN) == 0;
  }
  bool wait_settled() {
    const bool goes_on = wait(settle_milliseconds);
    drain();
    return goes_on;
  }
  void drain() {
    alignas(inotify_event) std::array<char, 16384> buffer{};
    while (::read(notes_.get(), buffer.data(), buffer.size()) > 0) {
      // What changed does not matter: the caller looks for itself.
    }
  }

  int add(const std::string& path) {
    return ::inotify_add_watch(notes_.get(), path.c_str(), events);
  }

  /// Watches the folder and those below it, or its nearest existing ancestor. Adding twice is
  /// harmless.
  void add_watches() {
    if (add_folder()) {
      return;
    }
    std::string at = parent_of(path_);
    int watched = add(at);
    while (watched < 0 && at != "/") {
      at = parent_of(at);
      watched = add(at);
    }
    if (watched != ancestor_) {
      leave_ancestor();
      ancestor_ = watched;
    }
    add_folder();  // when it was made in between
  }
  bool add_folder() {
    if (add(path_) < 0) {
      return false;
    }
    leave_ancestor();
    std::size_t count = 1;
    add_below(path_, 0, count);
    return true;
  }
  void leave_ancestor() {
    if (ancestor_ >= 0) {
      ::inotify_rm_watch(notes_.get(), ancestor_);
    }
    ancestor_ = -1;
  }
  void add_below(const std::string& folder, std::size_t depth, std::size_t& count) {
    auto names = base::list_folder(folder);
    if (!names.ok() || depth >= depth_max) {
      return;
    }
    for (const std::string& name : *names) {
      const std::string path = folder + "/" + name;
      if (count >= folder_count_max) {
        return;
      }
      if (add(path) >= 0) {  // IN_ONLYDIR: fails for files
        ++count;
        add_below(path, depth + 1, count);
      }
    }
  }

  const std::string path_;
  const base::Fd notes_;
  const base::Fd stop_;
  const std::function<void()> changed_;
  int ancestor_ = -1;  ///< only while the folder itself is missing; constructor, then the thread
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Watch> watch_folder(const std::string& path, std::function<void()> changed) {
  base::Fd notes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  base::Fd stop(::eventfd(0, EFD_CLOEXEC));
  if (!notes.valid() || !stop.valid()) {
    return nullptr;
  }
  std::string clean = path;
  while (clean.size() > 1 && clean.back() == '/') {
    clean.pop_back();
  }
  return std::make_unique<FolderWatch>(std::move(clean), std::move(notes), std::move(stop),
                                       std::move(changed));
}

}  // namespace hfd::remote
