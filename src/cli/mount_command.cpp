// SPDX-License-Identifier: Apache-2.0
#include "cli/mount_command.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>

#include "base/log.hpp"
#include "cli/control.hpp"
#include "cli/daemon.hpp"
#include "cli/report.hpp"
#include "fuse/session.hpp"

namespace hfd::cli {
namespace {

/// As the user wrote them.
struct MountArguments {
  std::string source;
  std::string folder;
  std::string bucket;
  std::string base;
  std::string ref = "main";
  std::string revision;
  std::string cache_dir;
  std::string cache_size = "10G";
  std::vector<std::string> options;  ///< of -o, maybe several comma lists
  bool read_only = false;
  bool foreground = false;
  bool verbose = false;
};

/// Options that mount(8) hands to every helper; they mean nothing to us or are the default.
const std::set<std::string>& ignored_options() {
  static const std::set<std::string> names = {"rw",    "defaults", "auto",   "noauto", "user",   "nouser", "users",
                                              "_netdev", "nofail", "dev",    "nodev",  "suid",   "nosuid", "exec",
                                              "noexec", "atime",   "noatime", "relatime", "nodiratime", "async"};
  return names;
}

Result<void> apply_option(const std::string& option, MountArguments& arguments, DaemonOptions& daemon) {
  const std::size_t equals = option.find('=');
  const std::string key = option.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  const bool has_value = equals != std::string::npos;
  const auto seconds = [&](std::chrono::milliseconds& out) -> Result<void> {
    HFD_TRY(const std::uint64_t ms, parse_seconds_ms(value).on(option));
    out = std::chrono::milliseconds(ms);
    return {};
  };
  if (has_value && key == "quiet") {
    return seconds(daemon.quiet);
  }
  if (has_value && key == "poll") {
    return seconds(daemon.poll);
  }
  if (has_value && key == "deadline") {
    return seconds(daemon.spec.deadline);
  }
  const std::array<std::pair<const char*, std::string*>, 6> texts = {{{"bucket", &arguments.bucket},
                                                                      {"base", &arguments.base},
                                                                      {"ref", &arguments.ref},
                                                                      {"revision", &arguments.revision},
                                                                      {"cache_dir", &arguments.cache_dir},
                                                                      {"cache_size", &arguments.cache_size}}};
  for (const auto& [name, target] : texts) {
    if (has_value && key == name) {
      *target = value;
      return {};
    }
  }
  if (!has_value && key == "sync") {
    daemon.sync_on_close = true;
  } else if (!has_value && key == "allow_other") {
    daemon.allow_other = true;
  } else if (!has_value && key == "ro") {
    arguments.read_only = true;
  } else if (has_value || ignored_options().count(key) == 0) {
    return Error{ErrorCode::invalid_argument, "unknown mount option", option,
                 "known are quiet=S, poll=S, deadline=S, sync, allow_other, ro"};
  }
  return {};
}

Result<void> apply_options(MountArguments& arguments, DaemonOptions& daemon) {
  for (const std::string& list : std::vector<std::string>(arguments.options)) {
    std::size_t at = 0;
    while (at <= list.size()) {
      const std::size_t comma = std::min(list.find(',', at), list.size());
      if (comma > at) {
        HFD_TRY_VOID(apply_option(list.substr(at, comma - at), arguments, daemon));
      }
      at = comma + 1;
    }
  }
  return {};
}

/// The mount point, usable: a dead mount of an earlier daemon is taken away first.
Result<std::string> prepare_mount_point(const std::string& folder) {
  HFD_TRY(const std::string path, canonical_folder(folder));
  fuse::MountPointState state = fuse::look_at_mount_point(path);
  if (state == fuse::MountPointState::dead) {
    HFD_TRY_VOID(fuse::unmount(path, true));
    warn("cleaned up the mount that a daemon left behind at " + path);
    state = fuse::look_at_mount_point(path);
  }
  switch (state) {
    case fuse::MountPointState::free: return path;
    case fuse::MountPointState::missing: return Error{ErrorCode::not_found, "no such folder to mount at", path};
    case fuse::MountPointState::not_a_folder: return Error{ErrorCode::invalid_argument, "not a folder", path};
    case fuse::MountPointState::not_empty:
      return Error{ErrorCode::invalid_argument, "the mount point is not empty", path, "mount at an empty folder"};
    case fuse::MountPointState::mounted:
      return Error{ErrorCode::busy, "already mounted", path, "see hfdeltafs status, or hfdeltafs umount it first"};
    case fuse::MountPointState::dead: return Error{ErrorCode::busy, "a dead mount cannot be taken away", path};
  }
  return path;
}

/// The daemon leaves the current folder, so relative paths are resolved here.
Result<std::string> absolute_uri(const std::string& text) {
  if (text.empty()) {
    return text;
  }
  HFD_TRY(remote::ParsedUri uri, remote::parse_uri(text));
  return uri.canonical;
}

/// Says what is wrong with SOURCE before anything is looked at that could be wrong because of it.
Result<void> check_source(const std::string& text) {
  HFD_TRY(const remote::ParsedUri uri, remote::parse_uri(text));
  if (uri.kind == remote::UriKind::folder && ::access(uri.path.c_str(), F_OK) != 0) {
    return base::os_error(errno, "cannot mount", uri.path);
  }
  return {};
}

Result<DaemonOptions> make_daemon_options(MountArguments& arguments) {
  DaemonOptions daemon;
  daemon.allow_other = ::geteuid() == 0;
  HFD_TRY_VOID(apply_options(arguments, daemon));
  HFD_TRY(daemon.cache_bytes_max, parse_size(arguments.cache_size));
  daemon.source_text = arguments.source;
  HFD_TRY(daemon.spec.source, absolute_uri(arguments.source));
  HFD_TRY(daemon.spec.bucket, absolute_uri(arguments.bucket));
  HFD_TRY(daemon.spec.base, absolute_uri(arguments.base));
  daemon.spec.ref = arguments.ref;
  daemon.spec.revision = arguments.revision;
  daemon.read_only = arguments.read_only;
  if (daemon.spec.source != daemon.spec.bucket) {
    HFD_TRY_VOID(check_source(daemon.spec.source));
  }
  HFD_TRY(daemon.mount_point, prepare_mount_point(arguments.folder));
  std::string cache_dir = arguments.cache_dir;
  if (!cache_dir.empty()) {
    HFD_TRY_VOID(base::make_folders(cache_dir, 0700));
    HFD_TRY(cache_dir, canonical_folder(cache_dir));
  }
  daemon.folders = local_folders(cache_dir, daemon.mount_point);
  return daemon;
}

std::string mounted_line(const DaemonOptions& options, const MountAnswer& answer) {
  return "mounted " + options.source_text + " at " + options.mount_point + " (version " + answer.version +
         (answer.read_only ? ", read-only)" : ")");
}

/// From here on the daemon speaks to its log only.
void leave_terminal(const DaemonOptions& options) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(null, 0);
  ::dup2(null, 1);
  const std::string path = options.folders.staging + "/daemon.log";
  const int log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(log >= 0 ? log : null, 2);
  ::close(null);
  if (log >= 0) {
    ::close(log);
  }
}

int run_foreground(const DaemonOptions& options) {
  int failure = 0;
  const int code = run_daemon(options, [&](const Result<MountAnswer>& answer) {
    if (answer.ok()) {
      print_text(mounted_line(options, *answer));
    } else {
      failure = report(answer.error(), false);
    }
  });
  return failure != 0 ? failure : code;
}

/// Forks before any thread exists; the child tells the parent through a pipe when the mount answers.
int run_background(const DaemonOptions& options) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    return report(base::os_error(errno, "cannot make", "pipe"), false);
  }
  const pid_t child = ::fork();
  if (child < 0) {
    return report(base::os_error(errno, "cannot start", "daemon"), false);
  }
  if (child == 0) {
    ::close(pipe[0]);
    ::setsid();
    [[maybe_unused]] const int moved = ::chdir("/");
    const int code = run_daemon(options, [&](const Result<MountAnswer>& answer) {
      const base::Json message =
          answer.ok() ? base::Json(base::Json::Object{{"line", base::Json(mounted_line(options, *answer))}})
                      : error_document(answer.error());
      const std::string text = message.dump();
      [[maybe_unused]] const auto written = ::write(pipe[1], text.data(), text.size());
      ::close(pipe[1]);
      leave_terminal(options);
    });
    ::_exit(code);
  }
  ::close(pipe[1]);
  const base::Fd answer(pipe[0]);
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; (n = ::read(answer.get(), piece.data(), piece.size())) != 0;) {
    if (n > 0) {
      text.append(piece.data(), static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      break;
    }
  }
  const auto message = base::parse_json(base::as_bytes(text));
  if (!message.ok()) {
    return report(Error{ErrorCode::io, "the daemon ended without a word", options.mount_point}, false);
  }
  if (const auto line = message->string_member("line"); line.ok()) {
    struct stat status {};
    ::stat(options.mount_point.c_str(), &status);  // answered by the daemon: the mount is in use from here on
    return print_text(*line);
  }
  return report(error_from_document(*message), false);
}

int run_mount(MountArguments arguments) {
  base::set_log_level(arguments.verbose ? base::LogLevel::info : base::LogLevel::warning);
  const auto options = make_daemon_options(arguments);
  if (!options.ok()) {
    return report(options.error(), false);
  }
  return arguments.foreground ? run_foreground(*options) : run_background(*options);
}

}  // namespace

void add_mount_command(Command& program) {
  Command command = program.add_command("mount", "Show a model as a folder of full files");
  const auto arguments = std::make_shared<MountArguments>();
  command.required("source", arguments->source, "A bucket, or a base model: a folder or a URI");
  command.required("folder", arguments->folder, "Where to mount; an empty folder");
  command.text("--bucket", arguments->bucket, "Where versions are published; makes a base writable");
  command.text("--base", arguments->base, "Where the base model is, if not where the bucket says");
  command.text("--ref", arguments->ref, "The line of versions to show");
  command.text("--revision", arguments->revision, "Show this version for good, read-only");
  command.flag("--read-only", arguments->read_only, "Refuse writes");
  command.flag("-f,--foreground", arguments->foreground, "Do not go to the background");
  command.flag("-v,--verbose", arguments->verbose, "Log more (staging folder, daemon.log)");
  command.text("--cache-dir", arguments->cache_dir, "Keep cache and staging below this folder");
  command.text("--cache-size", arguments->cache_size, "Cap of the cache on disk");
  command.repeated("-o", arguments->options, "quiet=5,poll=10,deadline=60,sync,allow_other,ro");
  command.footer("Example:\n  hfdeltafs mount ./Qwen3-0.6B /mnt/model --bucket ./deltas\n"
                  "  cp checkpoint/*.safetensors /mnt/model/   # five quiet seconds later it is a version");
  command.runs([arguments] { return run_mount(*arguments); });
}

int run_mount_helper(const std::vector<std::string>& words) {
  MountArguments arguments;
  std::vector<std::string> places;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-o" && i + 1 < words.size()) {
      arguments.options.push_back(words[++i]);
    } else if (words[i].starts_with("-o")) {
      arguments.options.push_back(words[i].substr(2));
    } else if (words[i] == "-t" && i + 1 < words.size()) {
      ++i;
    } else if (!words[i].starts_with("-")) {
      places.push_back(words[i]);
    }  // -s -f -n -v are mount(8)'s own business
  }
  if (places.size() != 2) {
    return report(Error{ErrorCode::invalid_argument, "usage", "mount.hfdeltafs SOURCE DIR [-o OPTIONS]"}, false);
  }
  arguments.source = places[0];
  arguments.folder = places[1];
  return run_mount(std::move(arguments));
}

}  // namespace hfd::cli
