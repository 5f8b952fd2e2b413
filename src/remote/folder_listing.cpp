// SPDX-License-Identifier: Apache-2.0
#include "remote/folder_listing.hpp"

#include <algorithm>
#include <cerrno>

#include "base/file.hpp"

namespace hfd::remote {
namespace {

/// Deeper trees than this are loops or mistakes.
constexpr std::size_t depth_max = 100;
/// Keeps a listing of a mistaken root ("/") from taking all memory.
constexpr std::size_t object_count_max = 10'000'000;

struct FolderId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FolderId&) const = default;
};

class Walk {
 public:
  explicit Walk(std::string root) : root_(std::move(root)) {}

  /// `name` is the folder's name on the remote, empty for the root.
  Result<void> folder(const std::string& name, const struct stat& status) {
    const FolderId id{status.st_dev, status.st_ino};
    const bool loops = std::find(above_.begin(), above_.end(), id) != above_.end();
    if (loops || above_.size() >= depth_max) {
      return {};
    }
    auto entries = base::list_folder(root_ + "/" + name);
    if (!entries.ok()) {
      if (entries.error().code == ErrorCode::not_found) {
        return {};  // gone since its parent was read
      }
      return std::move(entries).error();
    }
    above_.push_back(id);
    for (const std::string& entry : *entries) {
      if (name.empty() && entry == temporary_folder_name) {
        continue;
      }
      HFD_TRY_VOID(this->entry(name.empty() ? entry : name + "/" + entry));
    }
    above_.pop_back();
    return {};
  }

  std::vector<ObjectInfo> take() {
    std::sort(objects_.begin(), objects_.end(),
              [](const ObjectInfo& a, const ObjectInfo& b) { return a.name < b.name; });
    return std::move(objects_);
  }

 private:
  Result<void> entry(const std::string& name) {
    struct stat status {};
    const std::string path = root_ + "/" + name;
    if (::stat(path.c_str(), &status) != 0) {
      Error error = base::os_error(errno, "cannot stat", path);
      const bool leads_nowhere = error.code == ErrorCode::not_found || error.os_errno == ELOOP;
      return leads_nowhere ? Result<void>() : Result<void>(std::move(error));
    }
    if (S_ISDIR(status.st_mode)) {
      return folder(name, status);
    }
    if (S_ISREG(status.st_mode)) {
      if (objects_.size() >= object_count_max) {
        return Error{ErrorCode::unsupported, "cannot list: more files than a remote may hold",
                     root_};
      }
      objects_.push_back(object_info(name, status));
    }
    return {};
  }

  const std::string root_;
  std::vector<FolderId> above_;  ///< the folders that we are in, outermost first
  std::vector<ObjectInfo> objects_;
};

}  // namespace

ObjectInfo object_info(std::string name, const struct stat& status) {
  constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;
  constexpr std::int64_t seconds_max =
      9'000'000'000;  // what 64 bits of nanoseconds hold, and a margin
  const std::int64_t seconds =
      std::clamp<std::int64_t>(status.st_mtim.tv_sec, -seconds_max, seconds_max);
  return {std::move(name), static_cast<std::uint64_t>(status.st_size),
          seconds * nanoseconds_per_second + status.st_mtim.tv_nsec};
}

Result<std::vector<ObjectInfo>> list_objects(const std::string& root, const std::string& prefix) {
  struct stat status {};
  const std::string path = root + "/" + prefix;
  if (::stat(path.c_str(), &status) != 0) {
    Error error = base::os_error(errno, "cannot list", path);
    if (error.code == ErrorCode::not_found) {
      return std::vector<ObjectInfo>{};
    }
    return error;
  }
  if (!S_ISDIR(status.st_mode)) {
    return std::vector<ObjectInfo>{};
  }
  Walk walk(root);
  HFD_TRY_VOID(walk.folder(prefix, status));
  return walk.take();
}

}  // namespace hfd::remote
