// SPDX-License-Identifier: Apache-2.0
// The public headers on top of sessions.
#include <algorithm>
#include <utility>

#include "hfdeltafs/publisher.hpp"
#include "hfdeltafs/version.hpp"

#include "api/publish_folder.hpp"
#include "api/session.hpp"

namespace hfd {
namespace {

VersionFile file_of(const lineage::FileEntry& entry) {
  VersionFile file;
  file.path = entry.path;
  switch (entry.kind) {
    case lineage::FileEntry::Kind::file: file.kind = VersionFile::Kind::file; break;
    case lineage::FileEntry::Kind::symlink: file.kind = VersionFile::Kind::symlink; break;
    case lineage::FileEntry::Kind::folder: file.kind = VersionFile::Kind::folder; break;
  }
  file.bytes = entry.bytes;
  file.sha256 = entry.sha256;
  file.mtime_ns = entry.mtime;
  file.executable = entry.executable;
  file.symlink_target = entry.symlink_target;
  return file;
}

std::optional<std::string> optional_of(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace

struct OpenVersion::State {
  std::unique_ptr<api::Session> session;
  lineage::VersionPtr version;
  std::vector<VersionFile> files;
};

OpenVersion::OpenVersion(std::unique_ptr<State> state) : state_(std::move(state)) {}
OpenVersion::~OpenVersion() = default;
OpenVersion::OpenVersion(OpenVersion&&) noexcept = default;
OpenVersion& OpenVersion::operator=(OpenVersion&&) noexcept = default;

Result<OpenVersion> OpenVersion::open(const VersionOptions& options) {
  auto state = std::make_unique<State>();
  HFD_TRY(state->session,
          api::Session::open(
              {.source = options.source, .base = optional_of(options.base), .ref = options.ref}));
  HFD_TRY(state->version, state->session->version(options.version));
  for (const lineage::FileEntry& entry : state->version->manifest.files) {
    state->files.push_back(file_of(entry));
  }
  return OpenVersion(std::move(state));
}

const VersionId& OpenVersion::id() const { return state_->version->id; }
std::uint64_t OpenVersion::sequence() const { return state_->version->manifest.sequence; }
const std::vector<VersionFile>& OpenVersion::files() const { return state_->files; }

Result<std::vector<std::byte>> OpenVersion::read(std::string_view path, ByteRange range) const {
  const auto file = std::lower_bound(
      state_->files.begin(), state_->files.end(), path,
      [](const VersionFile& entry, std::string_view wanted) { return entry.path < wanted; });
  if (file == state_->files.end() || file->path != path || file->kind != VersionFile::Kind::file) {
    return Error{ErrorCode::not_found, "cannot read: no such file in this version",
                 std::string(path)};
  }
  if (!range.within(file->bytes)) {
    return Error{ErrorCode::invalid_argument, "cannot read: past the end of the file",
                 std::string(path)};
  }
  HFD_TRY(const base::Bytes bytes,
          state_->session->rebuilder().read_blocking({state_->version, file->sha256}, range));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<PublishReceipt> publish_folder(const PublishOptions& options) {
  HFD_TRY(const api::PublishedFolder published,
          api::publish_folder({.folder = options.folder,
                               .uri = options.bucket,
                               .base = optional_of(options.base),
                               .ref = options.ref,
                               .message = options.message}));
  PublishReceipt receipt;
  receipt.version = published.outcome.version->id;
  receipt.parent = published.outcome.version->manifest.parent;
  receipt.sequence = published.outcome.version->manifest.sequence;
  receipt.files = published.outcome.file_count;
  receipt.full_bytes = published.outcome.full_bytes;
  receipt.stored_bytes = published.outcome.stored_bytes;
  receipt.meta_bytes = published.outcome.meta_bytes;
  for (const publish::IncompleteFile& file : published.incomplete) {
    receipt.warnings.push_back("incomplete: " + file.path + ": " + file.reason);
  }
  for (const publish::IncompleteFile& file : published.stale) {
    receipt.warnings.push_back("left over: " + file.path + ": " + file.reason);
  }
  for (const std::string& path : published.junk) {
    receipt.warnings.push_back("left out, a temporary name: " + path);
  }
  for (const std::string& path : published.skipped) {
    receipt.warnings.push_back("left out, no version can hold it: " + path);
  }
  return receipt;
}

}  // namespace hfd
