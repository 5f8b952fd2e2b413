// SPDX-License-Identifier: Apache-2.0
// Manifests, claims and refs of a bucket. Names given by users are resolved in bucket_resolve.cpp.
#include "lineage/bucket.hpp"

#include <algorithm>
#include <list>
#include <unordered_map>

#include "base/hash.hpp"
#include "base/log.hpp"
#include "lineage/manifest_edges.hpp"
#include "lineage/ref_names.hpp"
#include "lineage/version_cache.hpp"

namespace hfd::lineage {
namespace {

constexpr std::string_view format_object = "hfdelta/format";
constexpr std::string_view format_text = "hfdeltafs 0\n";
constexpr std::uint64_t format_bytes_max = 256;
constexpr std::string_view versions_folder = "hfdelta/versions";
constexpr std::string_view version_suffix = ".json";
/// A hint that is further behind than this is not followed claim by claim: one listing is cheaper.
constexpr std::uint64_t probe_count_max = 32;

/// The newest claim among the objects of a ref. Several of one number (remotes without
/// put-if-absent): the earliest by the remote's own clock, then the lowest id, is the one that
/// counts.
std::optional<Claim> newest_claim(const std::vector<remote::ObjectInfo>& objects,
                                  const std::string& folder) {
  std::optional<Claim> best;
  base::UnixNanoseconds best_time = 0;
  for (const remote::ObjectInfo& object : objects) {
    const auto claim = parse_claim_name(std::string_view(object.name).substr(folder.size() + 1));
    if (!claim) {
      continue;  // the hint, or a ref below this one
    }
    const bool newer = !best || claim->sequence > best->sequence;
    const bool wins = best && claim->sequence == best->sequence &&
                      std::pair(object.mtime, claim->version) < std::pair(best_time, best->version);
    if (newer || wins) {
      best = claim;
      best_time = object.mtime;
    }
  }
  return best;
}

}  // namespace

std::string version_object(const VersionId& id) {
  return std::string(versions_folder) + "/" + id.hex() + std::string(version_suffix);
}
std::string delta_object(const ObjectId& id) { return "hfdelta/deltas/" + id.hex() + ".hfd"; }
std::string blob_object(const ObjectId& id) { return "hfdelta/blobs/" + id.hex(); }

std::string object_of(const Edge& edge) {
  if (const auto* blob = std::get_if<BlobEdge>(&edge)) {
    return blob_object(blob->object);
  }
  if (const auto* delta = std::get_if<DeltaEdge>(&edge)) {
    return delta_object(delta->object);
  }
  return {};
}

Bucket::Bucket(remote::Remote& remote, std::chrono::milliseconds deadline)
    : remote_(remote), deadline_(deadline), cache_(std::make_shared<Cache>()) {}

base::Deadline Bucket::deadline() const { return base::deadline_in(deadline_); }

Result<bool> Bucket::is_initialised() {
  auto bytes =
      remote::read_whole(remote_, std::string(format_object), format_bytes_max, deadline());
  if (!bytes.ok()) {
    if (bytes.error().code == ErrorCode::not_found) {
      return false;
    }
    return std::move(bytes).error();
  }
  std::string_view text = base::as_text(*bytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  if (text != format_text.substr(0, format_text.size() - 1)) {
    Error error{ErrorCode::unsupported,
                "cannot use the bucket: its layout is not one that this program knows: \"" + std::string(text.substr(0, 40)) + "\"",
                remote_.uri()};
    return std::move(error).with_hint("use a newer hfdeltafs");
  }
  return true;
}

Result<void> Bucket::initialise() {
  HFD_TRY(const bool there, is_initialised());
  if (there) {
    return {};
  }
  base::MemoryBytes text(base::as_bytes(format_text));  // two writers at once write the same bytes
  return remote_.put(std::string(format_object), text).in("cannot initialise the bucket");
}

Result<VersionId> Bucket::read_claim(const std::string& ref, const Claim& claim) {
  if (claim.version) {
    return *claim.version;
  }
  const std::string name = claim_object(ref, claim.sequence);
  HFD_TRY(const base::Bytes bytes, remote::read_whole(remote_, name, claim_bytes_max, deadline()));
  return parse_claim_text(bytes).on(name);
}

Result<std::optional<RefState>> Bucket::head_by_hint(const std::string& ref) {
  auto hint = remote::read_whole(remote_, hint_object(ref), claim_bytes_max, deadline());
  if (!hint.ok()) {
    // Missing, or cut short by a crash of somebody else's writer: the listing knows.
    return std::optional<RefState>{};
  }
  const auto start = parse_hint_text(*hint);
  std::optional<RefState> state;
  for (std::uint64_t step = 0; start && step <= probe_count_max && *start + step <= sequence_max;
       ++step) {
    auto version = read_claim(ref, Claim{*start + step, std::nullopt});
    if (version.ok()) {
      state = RefState{*version, *start + step};
      continue;
    }
    if (version.error().code != ErrorCode::not_found) {
      return std::move(version).error();
    }
    return state;  // the claim after it is missing: it is the newest. (Or none: the hint was
                   // wrong.)
  }
  return std::optional<RefState>{};
}

Result<std::optional<RefState>> Bucket::head(const std::string& ref) {
  if (!is_valid_ref(ref)) {
    return Error{ErrorCode::invalid_argument, "not a valid ref name", ref};
  }
  if (remote_.capabilities().put_if_absent) {
    HFD_TRY(std::optional<RefState> state, head_by_hint(ref));
    if (state) {
      return state;
    }
  }
  HFD_TRY(const std::vector<remote::ObjectInfo> objects, remote_.list(ref_folder(ref)));
  const auto claim = newest_claim(objects, ref_folder(ref));
  if (!claim) {
    return std::optional<RefState>{};
  }
  HFD_TRY(const VersionId version, read_claim(ref, *claim));
  return std::optional<RefState>(RefState{version, claim->sequence});
}

Result<std::vector<std::string>> Bucket::refs() {
  HFD_TRY(const std::vector<remote::ObjectInfo> objects, remote_.list(std::string(refs_folder)));
  std::vector<std::string> refs;
  for (const remote::ObjectInfo& object : objects) {
    const std::string_view below = std::string_view(object.name).substr(refs_folder.size() + 1);
    const std::size_t slash = below.rfind('/');
    if (slash == std::string_view::npos || !parse_claim_name(below.substr(slash + 1))) {
      continue;
    }
    const std::string_view ref = below.substr(0, slash);
    if (is_valid_ref(ref)) {
      refs.emplace_back(ref);
    }
  }
  std::sort(refs.begin(), refs.end());
  refs.erase(std::unique(refs.begin(), refs.end()), refs.end());
  return refs;
}

Result<void> Bucket::claim(const std::string& ref, std::uint64_t sequence,
                           const VersionId& version) {
  if (!is_valid_ref(ref) || sequence > sequence_max) {
    return Error{ErrorCode::invalid_argument, "not a valid ref name or number", ref};
  }
  if (!remote_.capabilities().put_if_absent) {
    Error error{ErrorCode::unsupported,
                "cannot claim a version: writing to a remote without put-if-absent comes "
                "with a later version",
                remote_.uri()};
    return std::move(error).with_hint("publish to a folder");
  }
  const std::string name = claim_object(ref, sequence);
  auto written = remote_.put_if_absent(name, base::as_bytes(claim_text(version)));
  if (!written.ok()) {
    if (written.error().code != ErrorCode::already_exists) {
      return written;
    }
    HFD_TRY(const VersionId holder, read_claim(ref, Claim{sequence, std::nullopt}));
    if (holder != version) {
      Error error{ErrorCode::conflict, "another writer published this number first", name};
      return std::move(error).with_hint("publish again on top of it");
    }
  }
  const std::string hint = hint_text(sequence, version);
  base::MemoryBytes text(base::as_bytes(hint));
  if (auto hinted = remote_.put(hint_object(ref), text); !hinted.ok()) {
    // The claim stands; readers find it without the hint.
    base::log(base::LogLevel::warning,
              "cannot write " + hint_object(ref) + ": " + hinted.error().message);
  }
  return {};
}

Result<void> Bucket::remove_ref(const std::string& ref) {
  if (!is_valid_ref(ref)) {
    return Error{ErrorCode::invalid_argument, "not a valid ref name", ref};
  }
  const std::string folder = ref_folder(ref);
  HFD_TRY(const std::vector<remote::ObjectInfo> objects, remote_.list(folder));
  // Oldest first, so that a removal that is interrupted never shows an older version as the newest.
  for (const remote::ObjectInfo& object : objects) {
    if (parse_claim_name(std::string_view(object.name).substr(folder.size() + 1))) {
      HFD_TRY_VOID(remote_.remove(object.name));
    }
  }
  return remote_.remove(hint_object(ref));
}

Result<VersionPtr> Bucket::version(const VersionId& id) {
  if (VersionPtr known = cache_->find(id)) {
    return known;
  }
  const std::string name = version_object(id);
  HFD_TRY(const base::Bytes bytes,
          remote::read_whole(remote_, name, manifest_bytes_max, deadline()));
  if (base::version_id(bytes) != id) {
    Error error{ErrorCode::corrupt,
                "cannot read the manifest: its bytes are not what its name says", name};
    return std::move(error).with_hint("hfdeltafs verify lists what is damaged");
  }
  HFD_TRY(Manifest manifest, parse_manifest(bytes).on(name));
  const auto version =
      std::make_shared<const Version>(Version{id, std::move(manifest), bytes.size()});
  cache_->insert(version);
  return VersionPtr(version);
}

Result<VersionPtr> Bucket::put_version(const Manifest& manifest) {
  HFD_TRY(VersionPtr version, make_version(manifest));
  const std::string text = serialize_manifest(version->manifest);
  base::MemoryBytes bytes(base::as_bytes(text));
  HFD_TRY_VOID(remote_.put(version_object(version->id), bytes));
  cache_->insert(version);
  return version;
}

Result<std::vector<VersionId>> Bucket::version_ids() {
  HFD_TRY(const std::vector<remote::ObjectInfo> objects,
          remote_.list(std::string(versions_folder)));
  std::vector<VersionId> ids;
  for (const remote::ObjectInfo& object : objects) {
    std::string_view name = std::string_view(object.name).substr(versions_folder.size() + 1);
    if (name.size() != 64 + version_suffix.size() || name.substr(64) != version_suffix) {
      continue;
    }
    if (const auto id = VersionId::from_hex(name.substr(0, 64)); id.ok()) {
      ids.push_back(*id);
    }
  }
  return ids;
}

Result<VersionPtr> make_version(const Manifest& manifest) {
  const std::string text = serialize_manifest(manifest);
  // Through our own parser: what we write can be read, and what we hold is what readers will see.
  auto parsed = parse_manifest(base::as_bytes(text));
  if (!parsed.ok()) {
    return std::move(parsed).error().in("cannot make a version");
  }
  const VersionId id = base::version_id(base::as_bytes(text));
  return VersionPtr(std::make_shared<const Version>(Version{id, std::move(*parsed), text.size()}));
}

}  // namespace hfd::lineage
