// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <vector>

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.hpp"
#include "rival.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every libc declares it

namespace hfd::bench {
namespace {

/// User + system time of the children waited for so far.
double children_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool run(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);  // 1 = O_WRONLY
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1, 0);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return failed == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace

bool xdelta_installed() { return run({"xdelta3", "-V"}); }

XdeltaRun run_xdelta(const BenchPair& pair, const std::string& folder) {
  const std::string delta = folder + "/xdelta";
  const std::string rebuilt = folder + "/rebuilt";
  XdeltaRun result;
  const double start = children_seconds();
  if (!run({"xdelta3", "-e", "-f", "-s", pair.base_path, pair.target_path, delta})) {
    return result;
  }
  const double encoded = children_seconds();
  if (!run({"xdelta3", "-d", "-f", "-s", pair.base_path, delta, rebuilt})) {
    return result;
  }
  result.encode_seconds = encoded - start;
  result.decode_seconds = children_seconds() - encoded;
  result.bytes = std::filesystem::file_size(delta);
  const auto bytes = base::read_file(rebuilt, pair.target.size() + 1);
  result.verified = bytes.ok() && *bytes == pair.target;
  return result;
}

}  // namespace hfd::bench
