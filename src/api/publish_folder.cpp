// SPDX-License-Identifier: Apache-2.0
#include "api/publish_folder.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <stdlib.h>

#include "api/folder_scan.hpp"
#include "api/session.hpp"

namespace hfd::api {
namespace {

/// Each try loses to a writer who was faster: more tries than writers can be needed, this many are
/// not.
constexpr int try_count_max = 16;

/// Where objects stand until they are uploaded. They can have gigabytes: not in /tmp, which may be
/// memory.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create() {
    const char* chosen =
        std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nothing sets the environment
    std::string path = (chosen != nullptr && *chosen != '\0' ? std::string(chosen) : "/var/tmp") +
                       "/hfdeltafs-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return base::os_error(errno, "cannot make a temporary folder", path);
    }
    return TemporaryFolder(std::move(path));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

bool is_at_or_below(const std::string& path, const std::string& folder) {
  return path == folder ||
         (path.size() > folder.size() && path.compare(0, folder.size(), folder) == 0 &&
          (folder == "/" || path[folder.size()] == '/'));
}

Result<void> check_places(const PublishFolderOptions& options) {
  HFD_TRY(const remote::ParsedUri uri, remote::parse_uri(options.uri));
  std::error_code failed;
  const std::string folder = std::filesystem::weakly_canonical(options.folder, failed).string();
  const std::string bucket = uri.kind == remote::UriKind::folder && !failed
                                 ? std::filesystem::weakly_canonical(uri.path, failed).string()
                                 : std::string();
  if (!bucket.empty() && is_at_or_below(bucket, folder)) {
    Error error{ErrorCode::invalid_argument, "cannot publish a folder into itself", options.uri};
    return std::move(error).with_hint("name a bucket outside of the folder");
  }
  return {};
}

/// Chooses parent and base for the next version, from where the ref stands now.
Result<void> choose_parent(Session& session, bool base_is_named, publish::PublishRequest& request,
                           lineage::VersionPtr& named_base) {
  HFD_TRY(const std::optional<lineage::RefState> head, session.bucket().head(request.ref));
  request.parent = nullptr;
  if (head) {
    HFD_TRY(request.parent, session.bucket().version(head->version));
  }
  const bool has_base = request.parent && request.parent->manifest.base;
  if (base_is_named && !has_base && !named_base) {
    HFD_TRY(named_base, session.base_version());
  }
  if (!head) {
    request.parent = named_base;
  }
  request.base = named_base;
  if (has_base) {
    HFD_TRY(request.base, session.bucket().base_version(request.ref));
  }
  return {};
}

}  // namespace

Result<PublishedFolder> publish_folder(const PublishFolderOptions& options) {
  HFD_TRY_VOID(check_places(options));
  HFD_TRY(FolderScan scan, scan_folder(options.folder));
  HFD_TRY(const std::unique_ptr<Session> session, Session::open({.source = options.uri,
                                                                 .as_bucket = true,
                                                                 .create = true,
                                                                 .base = options.base,
                                                                 .ref = options.ref}));
  HFD_TRY(const TemporaryFolder temporary, TemporaryFolder::create());
  PublishedFolder published;
  HFD_TRY(published.incomplete, publish::find_incomplete(scan.files));
  HFD_TRY(published.stale, publish::find_stale_shards(scan.files));
  published.junk = std::move(scan.junk);
  published.skipped = std::move(scan.skipped);
  publish::PublishRequest request;
  request.ref = options.ref;
  request.message = options.message;
  request.files = std::move(scan.files);
  request.temporary_folder = temporary.path();
  request.progress = options.progress;
  lineage::VersionPtr named_base;
  for (int tries = 1;; ++tries) {
    HFD_TRY_VOID(choose_parent(*session, options.base.has_value(), request, named_base));
    auto outcome =
        publish::publish_version(session->bucket(), request, session->opener(), session->pool());
    if (outcome.ok()) {
      published.outcome = std::move(*outcome);
      return published;
    }
    if (outcome.error().code != ErrorCode::conflict || tries == try_count_max) {
      return std::move(outcome).error();
    }
  }
}

}  // namespace hfd::api
