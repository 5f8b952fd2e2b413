// SPDX-License-Identifier: Apache-2.0
// A base as version 0. The same files always give the same manifest, so a base has one version id
// whoever mounts it and whenever: its time is that of its newest file.
//
// Left out: what downloaders and version control keep beside a model (`.git/`,
// `.cache/huggingface/` at the top), and names that no manifest may hold (`.hfdelta`). Everything
// else is the model as it is.
#include <algorithm>

#include <sys/stat.h>

#include "base/hash.hpp"
#include "lineage/bucket.hpp"
#include "lineage/parallel_for.hpp"

namespace hfd::lineage {
namespace {

constexpr std::uint64_t read_bytes = 1U << 20U;
constexpr std::chrono::milliseconds read_deadline{60'000};

bool is_left_out(std::string_view name) {
  const auto below = [name](std::string_view folder) {
    return name.substr(0, folder.size()) == folder;
  };
  return below(".git/") || below(".cache/huggingface/") || !is_valid_path(name);
}

/// The bytes of an object that has no local path.
class RemoteBytes final : public base::ReadableBytes {
 public:
  RemoteBytes(remote::Remote& remote, std::string name, std::uint64_t bytes)
      : remote_(remote), name_(std::move(name)), bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_; }
  Result<void> read_at(std::uint64_t offset, base::ByteSpan out) override {
    HFD_TRY(const base::Bytes bytes,
            remote::read_blocking(remote_, name_, ByteRange{offset, out.size()},
                                  base::deadline_in(read_deadline)));
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return {};
  }

 private:
  remote::Remote& remote_;
  std::string name_;
  std::uint64_t bytes_;
};

Result<std::unique_ptr<base::ReadableBytes>> open_object(remote::Remote& remote,
                                                         const remote::ObjectInfo& object) {
  if (const auto path = remote.local_path(object.name)) {
    HFD_TRY(std::unique_ptr<base::FileBytes> file, base::FileBytes::open(*path));
    return std::unique_ptr<base::ReadableBytes>(std::move(file));
  }
  return std::unique_ptr<base::ReadableBytes>(
      std::make_unique<RemoteBytes>(remote, object.name, object.bytes));
}

Result<ContentHash> hash_of(base::ReadableBytes& bytes) {
  base::Sha256 sha256;
  base::Bytes buffer(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), read_bytes)));
  for (std::uint64_t at = 0; at < bytes.size();) {
    const std::uint64_t count = std::min<std::uint64_t>(bytes.size() - at, buffer.size());
    const base::ByteSpan piece = base::ByteSpan(buffer).first(static_cast<std::size_t>(count));
    HFD_TRY_VOID(bytes.read_at(at, piece));
    sha256.update(piece);
    at += count;
  }
  return ContentHash{sha256.finish()};
}

bool is_executable(const remote::Remote& remote, const std::string& name) {
  const auto path = remote.local_path(name);
  struct stat status {};
  return path && ::stat(path->c_str(), &status) == 0 && (status.st_mode & S_IXUSR) != 0;
}

}  // namespace

Result<Manifest> manifest_of_base(remote::Remote& base, base::ThreadPool& pool) {
  HFD_TRY(std::vector<remote::ObjectInfo> objects, base.list(""));
  objects.erase(
      std::remove_if(objects.begin(), objects.end(),
                     [](const remote::ObjectInfo& object) { return is_left_out(object.name); }),
      objects.end());
  Manifest manifest;
  manifest.files.resize(objects.size());
  HFD_TRY_VOID(parallel_for(pool, objects.size(), [&](std::size_t i) -> Result<void> {
    HFD_TRY(const std::unique_ptr<base::ReadableBytes> bytes, open_object(base, objects[i]));
    FileEntry& file = manifest.files[i];
    file.path = objects[i].name;
    file.bytes = bytes->size();
    HFD_TRY(file.sha256, hash_of(*bytes).on(file.path));
    file.mtime = objects[i].mtime;
    file.executable = is_executable(base, file.path);
    return {};
  }));
  manifest.base = BaseInfo{base.uri(), {}};
  manifest.message = "base";
  for (const FileEntry& file : manifest.files) {
    manifest.stats.full_bytes += file.bytes;
    manifest.time = std::max(manifest.time, file.mtime);
    manifest.contents.try_emplace(
        file.sha256, Content{file.sha256, file.bytes, {UpstreamEdge{base.uri(), file.path}}});
  }
  return manifest;
}

}  // namespace hfd::lineage
