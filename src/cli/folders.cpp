// SPDX-License-Identifier: Apache-2.0
#include "cli/folders.hpp"

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"

namespace hfd::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before threads start
  return value == nullptr ? "" : value;
}

/// $VARIABLE, or HOME + `below` when it is unset or relative (which XDG says to ignore).
std::string xdg_folder(const char* variable, const char* below) {
  const std::string value = environment(variable);
  if (!value.empty() && value.front() == '/') {
    return value;
  }
  const std::string home = environment("HOME");
  return (home.empty() ? "/tmp" : home) + below;
}

/// A decimal number and the rest of the text; a number below 0 when there is none.
std::pair<double, std::string> split_number(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(copy.c_str(), &end);
  const bool plain = !copy.empty() && (copy.front() == '.' || (copy.front() >= '0' && copy.front() <= '9')) &&
                     copy.find_first_of("xXnN") == std::string::npos;
  if (!plain || end == copy.c_str() || errno != 0 || !std::isfinite(value)) {
    return {-1, copy};
  }
  return {value, end};
}

}  // namespace

LocalFolders local_folders(const std::string& cache_dir, const std::string& mount_point) {
  if (!cache_dir.empty()) {
    return {cache_dir + "/cache", cache_dir + "/staging"};
  }
  std::string name;
  for (const char c : mount_point) {
    name += c == '/' ? '-' : c;
  }
  constexpr std::size_t name_bytes_max = 100;
  constexpr std::size_t hash_digits = 12;
  name = name.substr(name.find_first_not_of('-') == std::string::npos ? 0 : name.find_first_not_of('-'), name_bytes_max);
  name += "-" + base::content_hash(base::as_bytes(mount_point)).hex().substr(0, hash_digits);
  return {xdg_folder("XDG_CACHE_HOME", "/.cache") + "/hfdeltafs",
          xdg_folder("XDG_STATE_HOME", "/.local/state") + "/hfdeltafs/" + name};
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto [value, unit] = split_number(text);
  const std::string units = "KMGT";
  double factor = 1;
  if (!unit.empty()) {
    const std::size_t power = units.find(static_cast<char>(std::toupper(unit.front())));
    const bool known = power != std::string::npos && (unit.size() == 1 || unit.substr(1) == "iB" || unit.substr(1) == "B");
    factor = known ? std::pow(1024.0, static_cast<double>(power) + 1) : -1;
  }
  constexpr double size_max = 1e18;
  if (value < 0 || factor < 0 || value * factor > size_max) {
    return Error{ErrorCode::invalid_argument, "not a size", std::string(text), "write 10G, 256M or a number of bytes"};
  }
  return static_cast<std::uint64_t>(value * factor);
}

Result<std::uint64_t> parse_seconds_ms(std::string_view text) {
  const auto [value, rest] = split_number(text);
  constexpr double seconds_max = 1e7;
  if (value < 0 || value > seconds_max || !rest.empty()) {
    return Error{ErrorCode::invalid_argument, "not a number of seconds", std::string(text)};
  }
  return static_cast<std::uint64_t>(std::llround(value * 1000.0));
}

Result<std::string> canonical_folder(const std::string& path) {
  std::string resolved(PATH_MAX, '\0');
  if (::realpath(path.c_str(), resolved.data()) != nullptr) {
    return std::string(resolved.c_str());
  }
  const int number = errno;
  if (number == ENOTCONN || number == ECONNABORTED) {
    std::string trimmed = path;
    while (trimmed.size() > 1 && trimmed.back() == '/') {
      trimmed.pop_back();
    }
    const std::size_t slash = trimmed.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : slash == 0 ? "/" : trimmed.substr(0, slash);
    if (::realpath(parent.c_str(), resolved.data()) != nullptr) {
      std::string base = resolved.c_str();
      return (base == "/" ? "" : base) + "/" + trimmed.substr(slash == std::string::npos ? 0 : slash + 1);
    }
  }
  return base::os_error(number, "no such folder", path);
}

}  // namespace hfd::cli
