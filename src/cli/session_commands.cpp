// SPDX-License-Identifier: Apache-2.0
#include "cli/session_commands.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <memory>
#include <thread>

#include "cli/control.hpp"
#include "cli/folders.hpp"
#include "cli/report.hpp"
#include "fuse/session.hpp"

namespace hfd::cli {
namespace {

using base::Json;

/// How long umount waits for the daemon's process after the mount is gone.
constexpr std::chrono::milliseconds end_wait{40'000};

/// Mount points of our type in /proc/self/mounts, octal escapes undone.
std::vector<std::string> mounts_of_ours() {
  std::ifstream mounts("/proc/self/mounts");
  std::vector<std::string> points;
  for (std::string line; std::getline(mounts, line);) {
    const std::size_t first = line.find(' ');
    const std::size_t second = line.find(' ', first + 1);
    const std::size_t third = line.find(' ', second + 1);
    if (third == std::string::npos || line.substr(second + 1, third - second - 1) != "fuse.hfdeltafs") {
      continue;
    }
    std::string point;
    for (std::size_t i = first + 1; i < second; ++i) {
      if (line[i] == '\\' && i + 3 < second) {
        point += static_cast<char>((line[i + 1] - '0') * 64 + (line[i + 2] - '0') * 8 + (line[i + 3] - '0'));
        i += 3;
      } else {
        point += line[i];
      }
    }
    points.push_back(std::move(point));
  }
  return points;
}

std::string text_of(const Json& object, const char* key) {
  const Json* member = object.find(key);
  return member != nullptr && member->as_string() != nullptr ? *member->as_string() : "-";
}

std::uint64_t number_of(const Json& object, const char* key) {
  const auto value = object.unsigned_member(key);
  return value.ok() ? *value : 0;
}

std::string people_text(const Json& mount) {
  const Json* cache = mount.find("cache");
  const Json* staging = mount.find("staging");
  std::string text = text_of(mount, "mount_point") + "\n  source   " + text_of(mount, "source");
  text += "\n  bucket   " + text_of(mount, "bucket") + "\n  ref      " + text_of(mount, "ref");
  text += "\n  version  " + text_of(mount, "version") + " (v" + std::to_string(number_of(mount, "seq")) + ")";
  if (cache != nullptr) {
    text += "\n  cache    " + std::to_string(number_of(*cache, "bytes")) + " of " +
            std::to_string(number_of(*cache, "limit_bytes")) + " bytes in " + text_of(*cache, "dir");
  }
  text += "\n  memory   " + std::to_string(number_of(mount, "rss_bytes")) + " bytes, pid " +
          std::to_string(number_of(mount, "pid"));
  if (staging != nullptr && staging->find("files") != nullptr && staging->find("files")->as_array() != nullptr) {
    for (const Json& file : *staging->find("files")->as_array()) {
      text += "\n  staged   " + text_of(file, "path") + ": " + text_of(file, "state") + ", " +
              std::to_string(number_of(file, "bytes")) + " bytes";
      text += text_of(file, "reason") == "-" ? "" : " (" + text_of(file, "reason") + ")";
    }
  }
  if (const Json* errors = mount.find("errors"); errors != nullptr && errors->as_array() != nullptr) {
    for (const Json& error : *errors->as_array()) {
      text += "\n  error    " + text_of(error, "time") + " " + text_of(error, "object") + ": " + text_of(error, "message");
    }
  }
  return text;
}

int run_status(const std::string& folder, bool json) {
  Json all = Json::array();
  if (!folder.empty()) {
    const auto status = mount_status(folder);
    if (!status.ok()) {
      return report(status.error(), json);
    }
    if (const Json* mounts = status->find("mounts"); mounts != nullptr && mounts->as_array() != nullptr) {
      all = *mounts;
    }
  } else {
    for (const std::string& point : mounts_of_ours()) {
      const auto status = mount_status(point);
      const Json* mounts = status.ok() ? status->find("mounts") : nullptr;
      if (mounts == nullptr || mounts->as_array() == nullptr || mounts->as_array()->empty()) {
        warn("no answer from the mount at " + point);
        continue;
      }
      all.push(mounts->as_array()->front());
    }
  }
  if (json) {
    return print_json(Json(Json::Object{{"mounts", std::move(all)}}));
  }
  for (const Json& mount : *all.as_array()) {
    print_text(people_text(mount));
  }
  return 0;
}

struct CommitArguments {
  std::string folder;
  std::string message;
  std::string timeout;
  bool partial = false;
  bool json = false;
};

int run_commit(const CommitArguments& arguments) {
  Json request = Json::object();
  request.set("command", "commit").set("message", arguments.message).set("partial", arguments.partial);
  if (!arguments.timeout.empty()) {
    const auto timeout_ms = parse_seconds_ms(arguments.timeout);
    if (!timeout_ms.ok()) {
      return report(timeout_ms.error(), arguments.json);
    }
    request.set("timeout_ms", *timeout_ms);
  }
  const auto answer = ask_mount(arguments.folder, request);
  if (!answer.ok()) {
    return report(answer.error(), arguments.json);
  }
  if (arguments.json) {
    return print_json(*answer);
  }
  return print_text(text_of(*answer, "version"));
}

bool process_lives(std::uint64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

int run_umount(const std::string& folder, const std::string& timeout) {
  const auto timeout_ms = parse_seconds_ms(timeout);
  if (!timeout_ms.ok()) {
    return report(timeout_ms.error(), false);
  }
  const auto path = canonical_folder(folder);
  if (!path.ok()) {
    return report(path.error(), false);
  }
  const fuse::MountPointState state = fuse::look_at_mount_point(*path);
  if (state == fuse::MountPointState::dead) {
    const auto gone = fuse::unmount(*path, true);
    return gone.ok() ? 0 : report(gone.error(), false);
  }
  if (state != fuse::MountPointState::mounted) {
    return report(Error{ErrorCode::not_found, "not an hfdeltafs mount", *path}, false);
  }
  const auto status = mount_status(*path);
  if (!status.ok()) {
    return report(status.error(), false);
  }
  const Json* mounts = status->find("mounts");
  const bool known = mounts != nullptr && mounts->as_array() != nullptr && !mounts->as_array()->empty();
  const std::uint64_t pid = known ? number_of(mounts->as_array()->front(), "pid") : 0;
  Json request = Json::object();
  request.set("command", "drain").set("timeout_ms", *timeout_ms);
  const auto drained = ask_mount(*path, request);
  if (const auto gone = fuse::unmount(*path, false); !gone.ok()) {
    return report(gone.error(), false);
  }
  const base::Deadline deadline = base::deadline_in(end_wait);
  while (pid != 0 && process_lives(pid) && base::SteadyClock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return drained.ok() ? 0 : report(drained.error(), false);
}

}  // namespace

void add_status_command(Command& program) {
  Command command = program.add_command("status", "Say what the mounts here do");
  const auto folder = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command.text("folder", *folder, "A mount point; all mounts when left out");
  command.flag("--json", *json, "One JSON document");
  command.footer("Example:\n  hfdeltafs status /mnt/model --json");
  command.runs([=] { return run_status(*folder, *json); });
}

void add_commit_command(Command& program) {
  Command command = program.add_command("commit", "Publish what was written, and wait until the bucket has it");
  const auto arguments = std::make_shared<CommitArguments>();
  command.required("folder", arguments->folder, "The mount point");
  command.message("-m,--message", arguments->message, "What this version is");
  command.flag("--partial", arguments->partial, "Publish incomplete sets and files left by a crash too");
  command.text("--timeout", arguments->timeout, "Seconds to wait");
  command.flag("--json", arguments->json, "One JSON document");
  command.footer("Example:\n  hfdeltafs commit /mnt/model -m 'step 41'");
  command.runs([arguments] { return run_commit(*arguments); });
}

void add_umount_command(Command& program) {
  Command command = program.add_command("umount", "Publish what is left, then take a mount away");
  const auto folder = std::make_shared<std::string>();
  const auto timeout = std::make_shared<std::string>("60");
  command.required("folder", *folder, "The mount point");
  command.text("--timeout", *timeout, "Seconds to publish what is left");
  command.footer("Example:\n  hfdeltafs umount /mnt/model");
  command.runs([=] { return run_umount(*folder, *timeout); });
}

}  // namespace hfd::cli
