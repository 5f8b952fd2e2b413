// SPDX-License-Identifier: Apache-2.0
#include "cli/sources.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/hash.hpp"

namespace hfd::cli {
namespace {

using lineage::VersionPtr;
using remote::ParsedUri;

bool is_empty_folder(const ParsedUri& uri) {
  if (uri.kind != remote::UriKind::folder) {
    return false;
  }
  const auto names = base::list_folder(uri.path);
  return names.ok() && names->empty();
}

VersionPtr as_version(lineage::Manifest manifest) {
  const std::string text = lineage::serialize_manifest(manifest);
  auto version = std::make_shared<lineage::Version>();
  version->id = base::version_id(base::as_bytes(text));
  version->manifest_bytes = text.size();
  version->manifest = std::move(manifest);
  return version;
}

}  // namespace

Result<std::unique_ptr<Sources>> Sources::open(const SourceSpec& spec, base::ThreadPool& pool) {
  auto sources = std::unique_ptr<Sources>(new Sources());  // NOLINT: private constructor
  HFD_TRY_VOID(sources->open_remotes(spec));
  HFD_TRY_VOID(sources->find_versions(spec, pool));
  return sources;
}

Result<void> Sources::open_remotes(const SourceSpec& spec) {
  if (!lineage::is_valid_ref(spec.ref)) {
    return Error{ErrorCode::invalid_argument, "not a ref", spec.ref, "use segments of letters, digits, . _ - joined by /"};
  }
  HFD_TRY(const ParsedUri source, remote::parse_uri(spec.source));
  source_uri_ = source.canonical;
  std::optional<ParsedUri> base_uri;
  std::optional<ParsedUri> bucket_uri;
  if (!spec.bucket.empty()) {
    HFD_TRY(bucket_uri, remote::parse_uri(spec.bucket));
  }
  const bool is_bucket_itself = bucket_uri && bucket_uri->canonical == source.canonical;
  if (!is_bucket_itself) {
    HFD_TRY(std::unique_ptr<remote::Remote> opened, remote::open_remote(source, false));
    lineage::Bucket probe(*opened, spec.deadline);
    HFD_TRY(const bool initialised, probe.is_initialised());
    if (!bucket_uri && (initialised || is_empty_folder(source))) {
      bucket_uri = source;
    } else if (initialised) {
      return Error{ErrorCode::unsupported, "a bucket as the base of another bucket is not supported yet",
                   source.canonical, "name a folder with the model's files"};
    } else {
      base_uri = source;
      base_remote_ = std::move(opened);
    }
  }
  if (!spec.base.empty()) {
    HFD_TRY(base_uri, remote::parse_uri(spec.base));
    HFD_TRY(base_remote_, remote::open_remote(*base_uri, false));
  }
  if (bucket_uri) {
    HFD_TRY(bucket_remote_, remote::open_remote(*bucket_uri, true));
    bucket_ = std::make_unique<lineage::Bucket>(*bucket_remote_, spec.deadline);
    HFD_TRY([[maybe_unused]] const bool known, bucket_->is_initialised());
  }
  return {};
}

Result<void> Sources::find_versions(const SourceSpec& spec, base::ThreadPool& pool) {
  std::optional<lineage::RefState> head;
  if (bucket_) {
    HFD_TRY(head, bucket_->head(spec.ref));
  }
  if (head) {
    HFD_TRY(start_, bucket_->version(head->version));
    // Version 0 of the ref, when it was published on a base: more sources to code against.
    if (const auto zero = bucket_->resolve("v0", spec.ref); zero.ok()) {
      HFD_TRY(base_, bucket_->version(*zero));
    }
    const bool is_named = !spec.base.empty() || (base_remote_ && bucket_remote_->uri() != source_uri_);
    HFD_TRY_VOID(check_base(is_named, pool));
  } else if (base_remote_) {
    HFD_TRY(lineage::Manifest manifest, lineage::manifest_of_base(*base_remote_, pool));
    base_ = as_version(std::move(manifest));
    start_ = base_;
    remember_base_files(base_->manifest);
  }
  if (!spec.revision.empty()) {
    if (bucket_ && head) {
      HFD_TRY(const VersionId id, bucket_->resolve(spec.revision, spec.ref));
      HFD_TRY(start_, bucket_->version(id));
    } else if (!start_ || (spec.revision != "v0" && spec.revision != "head" && spec.revision != start_->id.hex())) {
      return Error{ErrorCode::not_found, "no such version", spec.revision};
    }
  }
  return {};
}

/// Size and mtime now; nothing when the remote has no files that can be looked at directly.
Result<std::optional<Sources::Seen>> Sources::look_at_base_file(const std::string& path) const {
  const auto local = base_remote_->local_path(path);
  if (!local) {
    return std::optional<Seen>();
  }
  struct stat status {};
  if (::stat(local->c_str(), &status) != 0) {
    return base::os_error(errno, "a file of the base is gone", *local);
  }
  return std::optional<Seen>(Seen{static_cast<std::uint64_t>(status.st_size),
                                  status.st_mtim.tv_sec * 1'000'000'000LL + status.st_mtim.tv_nsec});
}

/// `right`: what the files hold now, just read or unchanged since.
void Sources::remember_base_files(const lineage::Manifest& right) {
  for (const lineage::FileEntry& entry : right.files) {
    const auto seen = look_at_base_file(entry.path);
    base_files_[entry.path] = seen.ok() ? *seen : std::nullopt;
  }
}

/// A base that stands in for the recorded one, or that changed on disk, must still hold the same bytes:
/// files that come straight from it carry no hash of their own blocks. One that the user named is refused
/// whole; of one that changed behind our back only the files that differ are.
Result<void> Sources::check_base(bool is_named, base::ThreadPool& pool) {
  if (!base_ || !base_->manifest.base) {
    return {};
  }
  if (!base_remote_) {
    HFD_TRY(const ParsedUri uri, remote::parse_uri(base_->manifest.base->uri));
    auto opened = remote::open_remote(uri, false);
    if (!opened.ok()) {
      return {};  // files that do not need the base still read; the others say so at open
    }
    base_remote_ = std::move(*opened);
  }
  const auto& files = base_->manifest.files;
  const bool unchanged = std::all_of(files.begin(), files.end(), [&](const lineage::FileEntry& entry) {
    const auto seen = look_at_base_file(entry.path);
    return entry.kind != lineage::FileEntry::Kind::file ||
           (seen.ok() && *seen && **seen == Seen{entry.bytes, entry.mtime});
  });
  if (unchanged) {
    remember_base_files(base_->manifest);
    return {};
  }
  HFD_TRY(const lineage::Manifest now, lineage::manifest_of_base(*base_remote_, pool));
  remember_base_files(now);
  for (const lineage::FileEntry& entry : files) {
    const auto same = std::find_if(now.files.begin(), now.files.end(),
                                   [&](const lineage::FileEntry& other) { return other.path == entry.path; });
    if (entry.kind != lineage::FileEntry::Kind::file || (same != now.files.end() && same->sha256 == entry.sha256)) {
      continue;
    }
    if (is_named) {
      return Error{ErrorCode::corrupt, "wrong base: a file is not what the bucket was made with",
                   base_remote_->uri() + "/" + entry.path, "name the right base with --base"};
    }
    base_files_[entry.path] = std::nullopt;
  }
  return {};
}

Result<void> Sources::check_base_file(const std::string& path) const {
  const auto known = base_files_.find(path);
  if (known == base_files_.end()) {
    return {};  // the remote itself will say that it is not there
  }
  const auto now = look_at_base_file(path);
  if (known->second && now.ok() && *now && **now == *known->second) {
    return {};
  }
  return Error{ErrorCode::corrupt, "the base changed: its bytes are not what the version was made with",
               base_remote_->uri() + "/" + path, "restore the file, or name another copy with --base"};
}

std::string Sources::base_uri() const {
  if (base_remote_) {
    return base_remote_->uri();
  }
  return base_ && base_->manifest.base ? base_->manifest.base->uri : "";
}

std::string Sources::base_revision() const {
  return base_ && base_->manifest.base ? base_->manifest.base->revision : "";
}

rebuild::UpstreamFinder Sources::upstream_finder() {
  return [this](const lineage::UpstreamEdge& edge) { return upstream(edge); };
}

Result<remote::Remote*> Sources::upstream(const lineage::UpstreamEdge& edge) {
  // The base that was named or checked at mount stands in for the recorded place.
  const bool is_base = base_ && base_->manifest.base && base_->manifest.base->uri == edge.uri;
  if (base_remote_ && (is_base || base_remote_->uri() == edge.uri)) {
    HFD_TRY_VOID(check_base_file(edge.path));
    return base_remote_.get();
  }
  const base::Lock lock(mutex_);
  std::unique_ptr<remote::Remote>& known = others_[edge.uri];
  if (!known) {
    HFD_TRY(const ParsedUri uri, remote::parse_uri(edge.uri));
    HFD_TRY(known, remote::open_remote(uri, false));
  }
  return known.get();
}

Result<VersionPtr> Sources::version(const VersionId& id) {
  for (const VersionPtr& known : {base_, start_}) {
    if (known && known->id == id) {
      return known;
    }
  }
  if (!bucket_) {
    return Error{ErrorCode::not_found, "no such version", id.hex()};
  }
  return bucket_->version(id);
}

Result<std::vector<VersionId>> Sources::version_ids() {
  std::vector<VersionId> ids;
  if (bucket_) {
    HFD_TRY(ids, bucket_->version_ids());
  }
  if (base_ && std::find(ids.begin(), ids.end(), base_->id) == ids.end()) {
    ids.push_back(base_->id);
  }
  return ids;
}

Result<std::vector<std::pair<std::string, VersionId>>> Sources::refs() {
  std::vector<std::pair<std::string, VersionId>> out;
  if (!bucket_) {
    return out;
  }
  HFD_TRY(const std::vector<std::string> names, bucket_->refs());
  for (const std::string& name : names) {
    HFD_TRY(const auto head, bucket_->head(name));
    if (head) {
      out.emplace_back(name, head->version);
    }
  }
  return out;
}

template <class Pick>
std::uint64_t Sources::sum(const Pick& pick) const {
  std::uint64_t total = 0;
  total += bucket_remote_ ? pick(bucket_remote_->counters()).load() : 0;
  total += base_remote_ ? pick(base_remote_->counters()).load() : 0;
  const base::Lock lock(mutex_);
  for (const auto& [uri, remote] : others_) {
    total += remote ? pick(remote->counters()).load() : 0;
  }
  return total;
}

std::uint64_t Sources::requests() const {
  return sum([](const remote::Counters& counters) -> const auto& { return counters.requests; });
}
std::uint64_t Sources::bytes_in() const {
  return sum([](const remote::Counters& counters) -> const auto& { return counters.bytes_in; });
}
std::uint64_t Sources::bytes_out() const {
  return sum([](const remote::Counters& counters) -> const auto& { return counters.bytes_out; });
}

}  // namespace hfd::cli
