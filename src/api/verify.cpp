// SPDX-License-Identifier: Apache-2.0
#include "api/verify.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/hash.hpp"
#include "lineage/parallel_for.hpp"
#include "lineage/ref_names.hpp"

namespace hfd::api {
namespace {

constexpr std::uint64_t read_bytes = 4U << 20U;
/// More lines than this help nobody; the exit code says the rest.
constexpr std::size_t bad_count_max = 10'000;

/// A version that needs an object, and for which file.
struct Need {
  std::string version;
  std::string path;
};

/// One stored object, as all manifests together describe it.
struct Wanted {
  std::string name;
  ObjectId id;
  std::uint64_t bytes = 0;
  std::set<std::tuple<std::uint64_t, std::uint64_t, ContentHash>> directories;
  std::vector<Need> needs;
};

/// One file of a base.
struct WantedUpstream {
  lineage::UpstreamEdge edge;
  std::uint64_t bytes = 0;
  std::vector<Need> needs;
};

class Verifier {
 public:
  explicit Verifier(Session& session) : session_(session) {}

  Result<Verification> run() {
    HFD_TRY_VOID(visit_refs());
    std::vector<Wanted*> objects;
    for (auto& [name, wanted] : objects_) {
      objects.push_back(&wanted);
    }
    out_.objects = objects.size();
    HFD_TRY_VOID(
        lineage::parallel_for(session_.pool(), objects.size(), [&](std::size_t i) -> Result<void> {
          check_object(*objects[i]);
          return {};
        }));
    for (auto& [key, wanted] : upstream_) {
      check_upstream(wanted);
    }
    std::sort(out_.bad.begin(), out_.bad.end(), [](const BadObject& a, const BadObject& b) {
      return std::tie(a.object, a.version, a.path) < std::tie(b.object, b.version, b.path);
    });
    return std::move(out_);
  }

 private:
  Result<void> visit_refs() {
    HFD_TRY(const std::vector<std::string> refs, session_.bucket().refs());
    for (const std::string& ref : refs) {
      HFD_TRY_VOID(visit_claims(ref));
    }
    return {};
  }

  /// Every claim, not the newest alone: each names a version that must be there.
  Result<void> visit_claims(const std::string& ref) {
    const std::string folder = lineage::ref_folder(ref);
    HFD_TRY(const std::vector<remote::ObjectInfo> objects, session_.remote().list(folder));
    for (const remote::ObjectInfo& object : objects) {
      const auto claim =
          lineage::parse_claim_name(std::string_view(object.name).substr(folder.size() + 1));
      if (!claim) {
        continue;
      }
      std::optional<VersionId> id = claim->version;
      if (!id) {
        auto bytes = remote::read_whole(session_.remote(), object.name, lineage::claim_bytes_max,
                                        deadline());
        auto parsed =
            bytes.ok() ? lineage::parse_claim_text(*bytes) : Result<VersionId>(bytes.error());
        if (!parsed.ok()) {
          add_bad({object.name, {}, {}, parsed.error().message});
          continue;
        }
        id = *parsed;
      }
      visit_version(*id);
    }
    return {};
  }

  /// The version and, as far as they are kept, those before it.
  void visit_version(VersionId id) {
    bool is_claimed = true;
    while (seen_.insert(id).second) {
      const auto version = session_.bucket().version(id);
      if (!version.ok()) {
        if (is_claimed || version.error().code != ErrorCode::not_found) {
          add_bad({lineage::version_object(id), id.hex(), {}, version.error().message});
        }
        return;
      }
      is_claimed = false;  // a parent may have been collected
      ++out_.versions;
      add_wanted(**version);
      if (!(*version)->manifest.parent) {
        return;
      }
      id = *(*version)->manifest.parent;
    }
  }

  void add_wanted(const lineage::Version& version) {
    std::map<ContentHash, std::string> paths;
    for (const lineage::FileEntry& file : version.manifest.files) {
      if (file.kind == lineage::FileEntry::Kind::file) {
        paths.emplace(file.sha256, file.path);
      }
    }
    for (const auto& [sha256, content] : version.manifest.contents) {
      const auto path = paths.find(sha256);
      const Need need{version.id.hex(), path == paths.end() ? std::string() : path->second};
      for (const lineage::Edge& edge : content.edges) {
        add_edge(edge, content, need);
      }
    }
  }

  void add_edge(const lineage::Edge& edge, const lineage::Content& content, const Need& need) {
    if (const auto* upstream = std::get_if<lineage::UpstreamEdge>(&edge)) {
      WantedUpstream& wanted = upstream_[upstream->uri + "\n" + upstream->path];
      wanted.edge = *upstream;
      wanted.bytes = content.bytes;
      wanted.needs.push_back(need);
      return;
    }
    Wanted& wanted = objects_[lineage::object_of(edge)];
    wanted.name = lineage::object_of(edge);
    wanted.needs.push_back(need);
    const auto note = [&wanted](const auto& object) {
      wanted.id = object.object;
      wanted.bytes = object.object_bytes;
      if (object.directory.size != 0) {
        wanted.directories.emplace(object.directory.offset, object.directory.size,
                                   object.directory_sha256);
      }
    };
    if (const auto* blob = std::get_if<lineage::BlobEdge>(&edge)) {
      note(*blob);
    } else if (const auto* delta = std::get_if<lineage::DeltaEdge>(&edge)) {
      note(*delta);
    }
  }

  void check_object(const Wanted& wanted) {
    const auto there = session_.remote().head(wanted.name);
    if (!there.ok()) {
      return add_bad(wanted.name, wanted.needs, there.error().message);
    }
    if (there->bytes != wanted.bytes) {
      return add_bad(
          wanted.name, wanted.needs,
          std::to_string(there->bytes) + " bytes instead of " + std::to_string(wanted.bytes));
    }
    const auto sha256 = hash_of(wanted.name, ByteRange{0, wanted.bytes});
    if (!sha256.ok()) {
      return add_bad(wanted.name, wanted.needs, sha256.error().message);
    }
    {
      const base::Lock lock(mutex_);
      out_.bytes += wanted.bytes;
    }
    if (sha256->bytes != wanted.id.bytes) {
      return add_bad(wanted.name, wanted.needs, "its bytes are not what its name says");
    }
    for (const auto& [offset, size, expected] : wanted.directories) {
      const auto directory = hash_of(wanted.name, ByteRange{offset, size});
      if (!directory.ok() || *directory != expected) {
        return add_bad(wanted.name, wanted.needs, "its directory is not what the manifest says");
      }
    }
  }

  Result<ContentHash> hash_of(const std::string& name, ByteRange range) {
    base::Sha256 sha256;
    for (std::uint64_t at = 0; at < range.size; at += read_bytes) {
      const ByteRange piece{range.offset + at, std::min(read_bytes, range.size - at)};
      HFD_TRY(const base::Bytes bytes,
              remote::read_blocking(session_.remote(), name, piece, deadline()));
      sha256.update(bytes);
    }
    return ContentHash{sha256.finish()};
  }

  void check_upstream(const WantedUpstream& wanted) {
    const std::string name = wanted.edge.uri + "/" + wanted.edge.path;
    const auto remote = session_.upstreams().find(wanted.edge);
    if (!remote.ok()) {
      return add_bad(name, wanted.needs, remote.error().message);
    }
    const auto there = (*remote)->head(wanted.edge.path);
    if (!there.ok()) {
      return add_bad(name, wanted.needs, there.error().message);
    }
    if (there->bytes != wanted.bytes) {
      add_bad(name, wanted.needs,
              std::to_string(there->bytes) + " bytes instead of " + std::to_string(wanted.bytes));
    }
  }

  void add_bad(const std::string& object, const std::vector<Need>& needs,
               const std::string& reason) {
    for (const Need& need : needs) {
      add_bad({object, need.version, need.path, reason});
    }
  }
  void add_bad(BadObject bad) {
    const base::Lock lock(mutex_);
    if (out_.bad.size() < bad_count_max) {
      out_.bad.push_back(std::move(bad));
    }
  }
  static base::Deadline deadline() { return base::deadline_in(std::chrono::seconds(60)); }

  Session& session_;
  base::Mutex mutex_;  ///< out_.bytes and out_.bad, while objects are checked by several threads
  std::set<VersionId> seen_;
  std::map<std::string, Wanted> objects_;
  std::map<std::string, WantedUpstream> upstream_;
  Verification out_;
};

}  // namespace

Result<Verification> verify_bucket(Session& session) {
  if (!session.is_bucket()) {
    Error error{ErrorCode::invalid_argument, "cannot verify it: not a bucket",
                session.remote().uri()};
    return std::move(error).with_hint("name a bucket that something was published to");
  }
  return Verifier(session).run();
}

}  // namespace hfd::api
