// SPDX-License-Identifier: Apache-2.0
// Which names may stand in a manifest. A hostile manifest must not be able to name anything outside
// the tree, shadow the .hfdelta folder, or make a name that no file system takes.
#include <algorithm>
#include <string_view>

#include "lineage/manifest.hpp"

namespace hfd::lineage {
namespace {

constexpr std::size_t ref_bytes_max = 200;

/// Calls `visit` with each segment; false as soon as it says no.
template <class Visit>
bool all_segments(std::string_view path, Visit visit) {
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t slash = std::min(path.find('/', start), path.size());
    if (!visit(path.substr(start, slash - start))) {
      return false;
    }
    start = slash + 1;
  }
  return true;
}

bool is_ref_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

bool is_ref_segment(std::string_view segment) {
  const bool digits =
      std::all_of(segment.begin(), segment.end(), [](char c) { return c >= '0' && c <= '9'; });
  return !segment.empty() && !digits && segment != "." && segment != ".." && segment != "head" &&
         std::all_of(segment.begin(), segment.end(), is_ref_character);
}

}  // namespace

bool is_valid_path(std::string_view path) {
  if (path.empty() || path.size() > path_bytes_max || path.find('\0') != std::string_view::npos) {
    return false;
  }
  if (path == ".hfdelta" || path.substr(0, 9) == ".hfdelta/") {
    return false;
  }
  return all_segments(path, [](std::string_view segment) {
    return !segment.empty() && segment.size() <= name_bytes_max && segment != "." &&
           segment != "..";
  });
}

bool is_inside_symlink(std::string_view path, std::string_view target) {
  if (target.empty() || target.size() > path_bytes_max || target.front() == '/' ||
      target.find('\0') != std::string_view::npos) {
    return false;
  }
  // ".." may only stand at the start: after a name, that name could itself be a symlink (d -> "."
  // makes "d/.." leave the root although the text does not). So each link of a chain stays inside
  // by itself.
  auto depth = std::count(path.begin(), path.end(), '/');
  bool named = false;
  return all_segments(target, [&](std::string_view segment) {
    if (segment == "..") {
      return !named && --depth >= 0;
    }
    named = named || (!segment.empty() && segment != ".");
    return true;
  });
}

bool is_valid_ref(std::string_view ref) {
  return !ref.empty() && ref.size() <= ref_bytes_max && all_segments(ref, is_ref_segment);
}

}  // namespace hfd::lineage
