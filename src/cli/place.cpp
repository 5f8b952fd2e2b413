// SPDX-License-Identifier: Apache-2.0
#include "cli/place.hpp"

#include <array>
#include <cstdio>

#include "base/json.hpp"
#include "cli/control.hpp"
#include "remote/remote.hpp"

namespace hfd::cli {
namespace {

std::string text_member(const base::Json& object, std::string_view key) {
  const base::Json* value = object.find(key);
  return value != nullptr && value->as_string() != nullptr ? *value->as_string() : std::string();
}

}  // namespace

Place find_place(const std::string& given) {
  Place place;
  place.source = given.empty() ? "." : given;
  if (!is_place(place.source) && mount_status(place.source).ok()) {
    place.source = "./" + place.source;  // a mount point given by its bare name
  }
  const auto uri = remote::parse_uri(place.source);
  if (!uri.ok() || uri->kind != remote::UriKind::folder) {
    return place;
  }
  const auto status = mount_status(uri->path);
  const base::Json* mounts = status.ok() ? status->find("mounts") : nullptr;
  if (mounts == nullptr || mounts->as_array() == nullptr || mounts->as_array()->empty()) {
    return place;
  }
  const base::Json& mount = mounts->as_array()->front();
  const std::string bucket = text_member(mount, "bucket");
  const std::string source = text_member(mount, "source");
  const std::string base = text_member(mount, "base");
  if (!bucket.empty() || !source.empty()) {
    place.source = bucket.empty() ? source : bucket;
    place.ref = text_member(mount, "ref");
    place.base = bucket.empty() || base.empty() ? std::nullopt : std::optional(base);
  }
  return place;
}

Result<std::unique_ptr<api::Session>> open_place(const std::string& given, const std::string& ref) {
  const Place place = find_place(given);
  const std::string own = place.ref.empty() ? "main" : place.ref;
  return api::Session::open(
      {.source = place.source, .base = place.base, .ref = ref.empty() ? own : ref});
}

bool is_place(const std::string& word) {
  return !word.empty() && (word.front() == '/' || word.front() == '.' || word.front() == '~' ||
                           word.find("://") != std::string::npos);
}

std::string people_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 6> units{"kB", "MB", "GB", "TB", "PB", "EB"};
  constexpr double step = 1000;
  if (bytes < 1000) {
    return std::to_string(bytes) + " B";
  }
  double value = static_cast<double>(bytes) / step;
  std::size_t unit = 0;
  while (value >= step && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, units[unit]);
  return text.data();
}

}  // namespace hfd::cli
