// SPDX-License-Identifier: Apache-2.0
// The read side of the library: one version of a model, its files and their bytes, without a mount.
// Every byte that read() gives was checked against the version. Blocking calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hfdeltafs/result.hpp"
#include "hfdeltafs/types.hpp"

namespace hfd {

/// One entry of a version.
struct VersionFile {
  enum class Kind { file, symlink, folder };  ///< folder: only empty ones are listed
  std::string path;                           ///< relative, segments joined by "/"; any bytes
  Kind kind = Kind::file;
  std::uint64_t bytes = 0;
  ContentHash sha256;         ///< of a file
  std::int64_t mtime_ns = 0;  ///< nanoseconds since 1970 UTC
  bool executable = false;
  std::string symlink_target;
};

struct VersionOptions {
  std::string source;        ///< a bucket or a base model: a path or URI
  std::string version = {};  ///< id, prefix, tag, ref, "head~N", "vN"; empty: the newest
  std::string base = {};     ///< where the base's files are, if not where the version says
  std::string ref = "main";
};

/// A version that is open for reading. Move-only; read() may be called from several threads at
/// once.
class OpenVersion {
 public:
  /// not_found when there is no such source or version; unsupported for remotes that come later.
  static Result<OpenVersion> open(const VersionOptions& options);
  ~OpenVersion();
  OpenVersion(OpenVersion&&) noexcept;
  OpenVersion& operator=(OpenVersion&&) noexcept;
  OpenVersion(const OpenVersion&) = delete;
  OpenVersion& operator=(const OpenVersion&) = delete;

  const VersionId& id() const;
  /// 0 for a base, 1 for the first publish.
  std::uint64_t sequence() const;
  /// Sorted by path, bytewise.
  const std::vector<VersionFile>& files() const;
  /// The bytes of `range` of a file. not_found, or invalid_argument when the range is not within
  /// the file; corrupt when stored bytes are not what the version says; unavailable.
  Result<std::vector<std::byte>> read(std::string_view path, ByteRange range) const;

 private:
  struct State;
  explicit OpenVersion(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hfd
