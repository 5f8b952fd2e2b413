// SPDX-License-Identifier: Apache-2.0
#include "publish/sources.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/mutex.hpp"
#include "lineage/closure.hpp"

namespace hfd::publish {
namespace {

/// A content that is opened by its first read: most sources of a large model are looked at never or
/// late.
class LazyContent final : public base::ReadableBytes {
 public:
  LazyContent(const ContentOpener& open, lineage::VersionPtr version,
              const lineage::Content& content)
      : open_(open), version_(std::move(version)), content_(content) {}

  std::uint64_t size() const override { return content_.bytes; }
  Result<void> read_at(std::uint64_t offset, base::ByteSpan out) override {
    HFD_TRY(base::ReadableBytes * reader, opened());
    return reader->read_at(offset, out);
  }

 private:
  Result<base::ReadableBytes*> opened() {
    const base::Lock lock(mutex_);
    if (!reader_) {
      HFD_TRY(reader_, open_(version_, content_.sha256));
    }
    return reader_.get();
  }

  const ContentOpener& open_;
  const lineage::VersionPtr version_;
  const lineage::Content& content_;  ///< within version_
  base::Mutex mutex_;
  std::unique_ptr<base::ReadableBytes> reader_ HFD_GUARDED_BY(mutex_);
};

const lineage::FileEntry* find_file(const lineage::Version& version, const std::string& path) {
  const auto& files = version.manifest.files;
  const auto at = std::lower_bound(
      files.begin(), files.end(), path,
      [](const lineage::FileEntry& file, const std::string& p) { return file.path < p; });
  const bool found =
      at != files.end() && at->path == path && at->kind == lineage::FileEntry::Kind::file;
  return found ? &*at : nullptr;
}

}  // namespace

bool is_safetensors_name(const std::string& path) {
  static constexpr std::string_view suffix = ".safetensors";
  return path.size() >= suffix.size() &&
         path.compare(path.size() - suffix.size(), suffix.size(), suffix) == 0;
}

SourceSet::SourceSet(const PublishRequest& request, const ContentOpener& open_content)
    : open_content_(open_content) {
  for (const lineage::VersionPtr& version : {request.parent, request.base}) {
    if (version && (versions_.empty() || versions_.front()->id != version->id)) {
      versions_.push_back(version);
      for (const auto& [sha256, content] : version->manifest.contents) {
        sizes_.insert(content.bytes);
      }
    }
  }
}

const lineage::Version* SourceSet::version_of(const ContentHash& sha256) const {
  for (const lineage::VersionPtr& version : versions_) {
    if (version->manifest.contents.count(sha256) != 0) {
      return version.get();
    }
  }
  return nullptr;
}

bool SourceSet::knows(const ContentHash& sha256) const { return version_of(sha256) != nullptr; }

std::uint64_t SourceSet::bytes_of(const ContentHash& sha256) const {
  const lineage::Version* version = version_of(sha256);
  HFD_CHECK(version != nullptr);
  return version->manifest.contents.at(sha256).bytes;
}

bool SourceSet::add_to(const ContentHash& sha256,
                       std::map<ContentHash, lineage::Content>& contents) const {
  const lineage::Version* version = version_of(sha256);
  return version != nullptr && lineage::add_closure(version->manifest.contents, sha256, contents);
}

void SourceSet::add(const lineage::FileEntry& file, std::unordered_set<ContentHash>& taken,
                    std::vector<codec::SourceFile>& sources) {
  if (file.kind != lineage::FileEntry::Kind::file || file.bytes == 0 ||
      !taken.insert(file.sha256).second) {
    return;
  }
  std::unique_ptr<base::ReadableBytes>& reader = readers_[file.sha256];
  for (auto version = versions_.begin(); !reader && version != versions_.end(); ++version) {
    if (const auto found = (*version)->manifest.contents.find(file.sha256);
        found != (*version)->manifest.contents.end()) {
      reader = std::make_unique<LazyContent>(open_content_, *version, found->second);
    }
  }
  HFD_CHECK(reader != nullptr);  // a manifest lists the contents of its files
  sources.push_back({file.sha256, file.path, reader.get()});
}

std::vector<codec::SourceFile> SourceSet::for_target(const std::string& path) {
  std::unordered_set<ContentHash> taken;
  std::vector<codec::SourceFile> sources;
  for (const lineage::VersionPtr& version : versions_) {
    if (const lineage::FileEntry* same = find_file(*version, path);
        same != nullptr && sources.empty()) {
      add(*same, taken, sources);
    }
  }
  if (!is_safetensors_name(path)) {
    return sources;
  }
  for (const lineage::VersionPtr& version : versions_) {
    for (const lineage::FileEntry& file : version->manifest.files) {
      if (is_safetensors_name(file.path)) {
        add(file, taken, sources);
      }
    }
  }
  return sources;
}

}  // namespace hfd::publish
