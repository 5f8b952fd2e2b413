// SPDX-License-Identifier: Apache-2.0
#include "api/folder_scan.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

#include "base/file.hpp"
#include "publish/work_tree.hpp"

namespace hfd::api {
namespace {

constexpr std::size_t depth_max = 200;

base::UnixNanoseconds mtime_of(const struct stat& status) {
  constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;
  constexpr std::int64_t seconds_max = 9'000'000'000;
  return std::clamp<std::int64_t>(status.st_mtim.tv_sec, -seconds_max, seconds_max) *
             nanoseconds_per_second +
         status.st_mtim.tv_nsec;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && mtime_of(a) == mtime_of(b);
}

/// Opens a file that must still be what it was when the folder was looked at.
Result<std::unique_ptr<base::ReadableBytes>> open_unchanged(const std::string& path,
                                                            const struct stat& then) {
  HFD_TRY(std::unique_ptr<base::FileBytes> file, base::FileBytes::open(path));
  struct stat now {};
  if (::stat(path.c_str(), &now) != 0 || !is_same(now, then)) {
    Error error{ErrorCode::stale, "cannot publish the file: it changed meanwhile", path};
    return std::move(error).with_hint("publish again when nothing writes to the folder");
  }
  return std::unique_ptr<base::ReadableBytes>(std::move(file));
}

class Scan {
 public:
  explicit Scan(std::string root) : root_(std::move(root)) {}

  /// `name` is relative to the root, empty for the root itself.
  Result<bool> folder(const std::string& name, std::size_t depth) {
    HFD_TRY(std::vector<std::string> names,
            base::list_folder(name.empty() ? root_ : root_ + "/" + name));
    std::sort(names.begin(), names.end());
    bool holds_any = false;
    for (const std::string& entry : names) {
      const std::string path = name.empty() ? entry : name + "/" + entry;
      if (publish::is_junk_name(entry)) {
        scan_.junk.push_back(path);
      } else if (lineage::is_valid_path(path) && depth < depth_max) {
        HFD_TRY(const bool added, this->entry(path, depth));
        holds_any = holds_any || added;
      } else {
        scan_.skipped.push_back(path);
      }
    }
    return holds_any;
  }
  FolderScan take() { return std::move(scan_); }

 private:
  /// True when the version will have something of this name.
  Result<bool> entry(const std::string& path, std::size_t depth) {
    const std::string full = root_ + "/" + path;
    struct stat status {};
    if (::lstat(full.c_str(), &status) != 0) {
      return base::os_error(errno, "cannot stat", full);
    }
    if (S_ISDIR(status.st_mode)) {
      HFD_TRY(const bool holds_any, folder(path, depth + 1));
      if (!holds_any) {
        add(path, lineage::FileEntry::Kind::folder, status);
      }
      return true;
    }
    if (S_ISLNK(status.st_mode)) {
      return symlink(path, status);
    }
    if (!S_ISREG(status.st_mode)) {
      scan_.skipped.push_back(path);
      return false;
    }
    add_file(path, status);
    return true;
  }

  Result<bool> symlink(const std::string& path, const struct stat& link) {
    const std::string full = root_ + "/" + path;
    std::string target(lineage::path_bytes_max + 1, '\0');
    const ssize_t size = ::readlink(full.c_str(), target.data(), target.size());
    if (size < 0) {
      return base::os_error(errno, "cannot read the symlink", full);
    }
    target.resize(static_cast<std::size_t>(size));
    if (lineage::is_inside_symlink(path, target)) {
      add(path, lineage::FileEntry::Kind::symlink, link).symlink_target = target;
      return true;
    }
    struct stat status {};
    if (::stat(full.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      add_file(path, status);
      return true;
    }
    scan_.skipped.push_back(path);
    return false;
  }

  lineage::FileEntry& add(const std::string& path, lineage::FileEntry::Kind kind,
                          const struct stat& status) {
    publish::PublishFile file;
    file.entry.path = path;
    file.entry.kind = kind;
    file.entry.mtime = mtime_of(status);
    scan_.files.push_back(std::move(file));
    return scan_.files.back().entry;
  }
  void add_file(const std::string& path, const struct stat& status) {
    lineage::FileEntry& entry = add(path, lineage::FileEntry::Kind::file, status);
    entry.bytes = static_cast<std::uint64_t>(status.st_size);
    entry.executable = (status.st_mode & S_IXUSR) != 0;
    scan_.files.back().open = [full = root_ + "/" + path, status] {
      return open_unchanged(full, status);
    };
  }

  const std::string root_;
  FolderScan scan_;
};

}  // namespace

Result<FolderScan> scan_folder(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    return base::os_error(errno, "cannot read the folder", folder);
  }
  if (!S_ISDIR(status.st_mode)) {
    Error error{ErrorCode::invalid_argument, "cannot publish it: not a folder", folder};
    return std::move(error).with_hint("name the folder that holds the file");
  }
  Scan scan(folder);
  HFD_TRY([[maybe_unused]] const bool holds_any, scan.folder("", 0));
  return scan.take();
}

}  // namespace hfd::api
