// SPDX-License-Identifier: Apache-2.0
#include "publish/publisher.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "lineage/parallel_for.hpp"
#include "lineage/ref_names.hpp"
#include "publish/encode.hpp"
#include "publish/sources.hpp"

namespace hfd::publish {
namespace {

using lineage::FileEntry;

/// One publish under way.
class Publication {
 public:
  Publication(lineage::Bucket& bucket, const PublishRequest& request,
              const ContentOpener& open_content, base::ThreadPool& pool)
      : bucket_(bucket),
        request_(request),
        pool_(pool),
        sources_(request, open_content),
        coder_(bucket, request, sources_, pool) {}

  Result<PublishOutcome> run() {
    const base::SteadyClock::time_point start = base::SteadyClock::now();
    HFD_TRY_VOID(check_request());
    HFD_TRY_VOID(check_parent_is_head());
    HFD_TRY_VOID(bucket_.initialise());
    HFD_TRY_VOID(base::make_folders(request_.temporary_folder, 0700));
    HFD_TRY_VOID(add_files());
    HFD_TRY_VOID(publish_base());
    if (request_.cancelled && request_.cancelled()) {
      return cancelled_error();
    }
    HFD_TRY_VOID(publish_manifest());
    outcome_.seconds = std::chrono::duration<double>(base::SteadyClock::now() - start).count();
    return std::move(outcome_);
  }

 private:
  Result<void> check_request();
  /// Finds a lost race before anything is encoded; claim() finds those that are lost meanwhile.
  Result<void> check_parent_is_head();
  Result<void> add_files();
  Result<void> add_known(FileEntry entry);
  Result<void> add_coded(FileEntry entry, const CodedFile& coded);
  Result<void> publish_base();
  Result<void> publish_manifest();
  std::uint64_t claim_bytes(std::uint64_t sequence, const VersionId& version) const {
    return lineage::claim_text(version).size() + lineage::hint_text(sequence, version).size();
  }

  lineage::Bucket& bucket_;
  const PublishRequest& request_;
  base::ThreadPool& pool_;
  SourceSet sources_;
  FileCoder coder_;
  lineage::Manifest manifest_;
  PublishOutcome outcome_;
};

Result<void> Publication::check_request() {
  if (!lineage::is_valid_ref(request_.ref)) {
    Error error{ErrorCode::invalid_argument, "not a valid ref name", request_.ref};
    return std::move(error).with_hint(
        "use letters, digits, dots, dashes and underscores, in segments joined by /");
  }
  std::vector<std::string_view> paths;
  for (const PublishFile& file : request_.files) {
    if (!lineage::is_valid_path(file.entry.path)) {
      return Error{ErrorCode::invalid_argument, "cannot publish a file of this name",
                   file.entry.path};
    }
    paths.emplace_back(file.entry.path);
  }
  std::sort(paths.begin(), paths.end());
  const auto twice = std::adjacent_find(paths.begin(), paths.end());
  if (twice != paths.end()) {
    return Error{ErrorCode::invalid_argument, "cannot publish two files of one name",
                 std::string(*twice)};
  }
  return {};
}

Result<void> Publication::check_parent_is_head() {
  HFD_TRY(const std::optional<lineage::RefState> head, bucket_.head(request_.ref));
  if (head && (!request_.parent || head->version != request_.parent->id)) {
    Error error{ErrorCode::conflict, "another writer published meanwhile", head->version.hex()};
    return std::move(error).with_hint("publish again on top of it");
  }
  return {};
}

Result<void> Publication::add_known(FileEntry entry) {
  if (!sources_.add_to(entry.sha256, manifest_.contents)) {
    return Error{ErrorCode::invalid_argument,
                 "cannot publish: the parent does not know this content", entry.path};
  }
  entry.bytes = sources_.bytes_of(entry.sha256);
  manifest_.files.push_back(std::move(entry));
  return {};
}

Result<void> Publication::add_coded(FileEntry entry, const CodedFile& coded) {
  entry.sha256 = coded.sha256;
  entry.bytes = coded.bytes;
  if (!coded.edge) {
    return add_known(std::move(entry));
  }
  if (const auto* delta = std::get_if<lineage::DeltaEdge>(&*coded.edge)) {
    for (const ContentHash& source : delta->sources) {
      if (!sources_.add_to(source, manifest_.contents)) {
        return Error{ErrorCode::corrupt, "the encoder used a source that it was not given",
                     entry.path};
      }
    }
  }
  manifest_.contents.try_emplace(coded.sha256,
                                 lineage::Content{coded.sha256, coded.bytes, {*coded.edge}});
  manifest_.stats.stored_bytes += coded.stored_bytes;
  manifest_.stats.changed_elements += coded.changed_elements;
  manifest_.stats.total_elements += coded.total_elements;
  manifest_.files.push_back(std::move(entry));
  return {};
}

Result<void> Publication::add_files() {
  // Small files go several at once (a folder of thousands costs two fsyncs each), then the large
  // ones, one by one: each of them keeps the whole pool busy and its window of blocks in memory.
  std::vector<const PublishFile*> unknown;
  for (const PublishFile& file : request_.files) {
    if (file.entry.kind == FileEntry::Kind::symlink &&
        !lineage::is_inside_symlink(file.entry.path, file.entry.symlink_target)) {
      outcome_.skipped.push_back(file.entry.path);
    } else if (file.entry.kind != FileEntry::Kind::file) {
      manifest_.files.push_back(file.entry);
    } else if (file.known) {
      HFD_TRY_VOID(add_known(file.entry));
    } else {
      unknown.push_back(&file);
    }
  }
  std::vector<std::optional<CodedFile>> coded(unknown.size());
  HFD_TRY_VOID(lineage::parallel_for(pool_, unknown.size(), [&](std::size_t i) -> Result<void> {
    const std::string& path = unknown[i]->entry.path;
    auto bytes = unknown[i]->open();
    if (!bytes.ok()) {
      return std::move(bytes).error().in("cannot publish").on(path);
    }
    if ((*bytes)->size() <= small_file_bytes_max) {
      HFD_TRY(coded[i], coder_.code_small(path, **bytes).on(path));
    }
    return {};
  }));
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const std::string& path = unknown[i]->entry.path;
    if (!coded[i]) {
      HFD_TRY(const std::unique_ptr<base::ReadableBytes> bytes, unknown[i]->open());
      HFD_TRY(coded[i], coder_.code_large(path, *bytes).on(path));
    }
    HFD_TRY_VOID(add_coded(unknown[i]->entry, *coded[i]));
  }
  return {};
}

Result<void> Publication::publish_base() {
  const lineage::VersionPtr& parent = request_.parent;
  if (!parent || parent->manifest.sequence != 0) {
    return {};
  }
  const auto there = bucket_.remote().head(lineage::version_object(parent->id));
  if (!there.ok()) {
    if (there.error().code != ErrorCode::not_found) {
      return there.error();
    }
    HFD_TRY(const lineage::VersionPtr stored, bucket_.put_version(parent->manifest));
    if (stored->id != parent->id) {
      return Error{ErrorCode::corrupt, "the base's manifest does not give its own id",
                   parent->id.hex()};
    }
    outcome_.meta_bytes += stored->manifest_bytes;
  }
  HFD_TRY(const std::optional<lineage::RefState> head, bucket_.head(request_.ref));
  if (!head) {
    HFD_TRY_VOID(bucket_.claim(request_.ref, 0, parent->id));
    outcome_.meta_bytes += claim_bytes(0, parent->id);
  }
  return {};
}

Result<void> Publication::publish_manifest() {
  std::sort(manifest_.files.begin(), manifest_.files.end(),
            [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
  if (request_.parent) {
    manifest_.parent = request_.parent->id;
    manifest_.sequence = request_.parent->manifest.sequence;
    manifest_.base = request_.parent->manifest.base;
  }
  if (!manifest_.base && request_.base) {
    manifest_.base = request_.base->manifest.base;
  }
  ++manifest_.sequence;
  manifest_.ref = request_.ref;
  manifest_.time = base::now_utc();
  manifest_.message = request_.message;
  for (const FileEntry& file : manifest_.files) {
    outcome_.file_count += file.kind == FileEntry::Kind::file ? 1U : 0U;
    manifest_.stats.full_bytes += file.bytes;
  }
  outcome_.full_bytes = manifest_.stats.full_bytes;
  outcome_.stored_bytes = manifest_.stats.stored_bytes;
  HFD_TRY(outcome_.version, bucket_.put_version(manifest_));
  const VersionId& id = outcome_.version->id;
  HFD_TRY_VOID(bucket_.claim(request_.ref, manifest_.sequence, id));
  outcome_.meta_bytes += outcome_.version->manifest_bytes + claim_bytes(manifest_.sequence, id);
  return {};
}

}  // namespace

Result<PublishOutcome> publish_version(lineage::Bucket& bucket, const PublishRequest& request,
                                       const ContentOpener& open_content, base::ThreadPool& pool) {
  return Publication(bucket, request, open_content, pool).run();
}

}  // namespace hfd::publish
