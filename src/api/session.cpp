// SPDX-License-Identifier: Apache-2.0
#include "api/session.hpp"

#include <algorithm>
#include <utility>

namespace hfd::api {
namespace {

constexpr std::chrono::milliseconds probe_deadline{60'000};

Error no_base(const std::string& object, std::string why) {
  Error error{ErrorCode::not_found, "cannot open the base: " + std::move(why), object};
  return std::move(error).with_hint("name the place of the base with --base");
}

}  // namespace

Result<remote::Remote*> Upstreams::find(const lineage::UpstreamEdge& edge) {
  const std::string& key = instead_ ? instead_->canonical : edge.uri;
  const base::Lock lock(mutex_);
  std::unique_ptr<remote::Remote>& known = remotes_[key];
  if (!known) {
    remote::ParsedUri uri;
    if (instead_) {
      uri = *instead_;
    } else {
      HFD_TRY(uri, remote::parse_uri(edge.uri));
    }
    auto opened = remote::open_remote(uri, false);
    if (!opened.ok()) {
      if (opened.error().code == ErrorCode::not_found) {
        return no_base(key, "it is not there");
      }
      return std::move(opened).error();
    }
    known = std::move(*opened);
  }
  return known.get();
}

Result<std::unique_ptr<remote::Remote>> open_base(const std::string& source) {
  HFD_TRY(const remote::ParsedUri uri, remote::parse_uri(source));
  HFD_TRY(std::unique_ptr<remote::Remote> remote, remote::open_remote(uri, false));
  lineage::Bucket bucket(*remote, probe_deadline);
  HFD_TRY(const bool is_bucket, bucket.is_initialised());
  if (is_bucket) {
    Error error{ErrorCode::unsupported, "cannot use it as a base: a bucket holds no plain files",
                uri.canonical};
    return std::move(error).with_hint("pull a version of it into a folder and name that");
  }
  return remote;
}

namespace {

Result<bool> is_empty_folder(const remote::ParsedUri& uri) {
  if (uri.kind != remote::UriKind::folder) {
    return false;
  }
  const auto names = base::list_folder(uri.path);
  return names.ok() && names->empty();
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  std::unique_ptr<Session> session(
      new Session(options));  // NOLINT(cppcoreguidelines-owning-memory): private constructor
  HFD_TRY(const remote::ParsedUri uri, remote::parse_uri(options.source));
  HFD_TRY(session->remote_, remote::open_remote(uri, options.create));
  std::optional<remote::ParsedUri> base;
  if (options.base) {
    HFD_TRY(base, remote::parse_uri(*options.base));
  }
  session->upstreams_ = std::make_unique<Upstreams>(std::move(base));
  session->bucket_ = std::make_unique<lineage::Bucket>(*session->remote_, options.deadline);
  HFD_TRY(const bool initialised, session->bucket_->is_initialised());
  // An empty folder is a bucket that nobody has written to yet.
  HFD_TRY(const bool is_empty, is_empty_folder(uri));
  session->is_bucket_ = initialised || options.as_bucket || is_empty;
  session->pool_ = std::make_unique<base::ThreadPool>("hfd-work", base::processor_count());
  rebuild::RebuildOptions rebuild;
  rebuild.deadline = options.deadline;
  rebuild.decode_threads = base::processor_count();
  Upstreams& upstreams = *session->upstreams_;
  session->rebuilder_ = rebuild::Rebuilder::create(
      *session->remote_,
      [&upstreams](const lineage::UpstreamEdge& edge) { return upstreams.find(edge); }, nullptr,
      rebuild);
  return session;
}

Result<lineage::VersionPtr> Session::base_version() {
  if (options_.base) {
    HFD_TRY(const std::unique_ptr<remote::Remote> base, open_base(*options_.base));
    HFD_TRY(const lineage::Manifest manifest, lineage::manifest_of_base(*base, *pool_));
    return lineage::make_version(manifest);
  }
  if (is_bucket_) {
    return Error{ErrorCode::invalid_argument, "cannot read the base: none is named",
                 remote_->uri()};
  }
  HFD_TRY(const lineage::Manifest manifest, lineage::manifest_of_base(*remote_, *pool_));
  return lineage::make_version(manifest);
}

Result<lineage::VersionPtr> Session::version(const std::string& text) {
  if (is_bucket_) {
    HFD_TRY(const VersionId id, bucket_->resolve(text, options_.ref));
    return bucket_->version(id);
  }
  HFD_TRY(const lineage::Manifest manifest, lineage::manifest_of_base(*remote_, *pool_));
  HFD_TRY(lineage::VersionPtr version, lineage::make_version(manifest));
  const std::string hex = version->id.hex();
  constexpr std::size_t prefix_digits_min = 6;
  const bool is_prefix = text.size() >= prefix_digits_min && hex.compare(0, text.size(), text) == 0;
  if (text.empty() || text == "head" || text == "v0" || is_prefix) {
    return version;
  }
  Error error{ErrorCode::not_found, "cannot find the version: a base has only version v0", text};
  return std::move(error).with_hint("name a bucket to see published versions");
}

std::unique_ptr<base::ReadableBytes> Session::open_content(const lineage::VersionPtr& version,
                                                           const ContentHash& sha256) {
  return rebuilder_->open({version, sha256});
}

publish::ContentOpener Session::opener() {
  return [this](const lineage::VersionPtr& version,
                const ContentHash& sha256) -> Result<std::unique_ptr<base::ReadableBytes>> {
    return open_content(version, sha256);
  };
}

}  // namespace hfd::api
