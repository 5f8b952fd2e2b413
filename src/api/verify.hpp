// SPDX-License-Identifier: Apache-2.0
// `hfdeltafs verify`: is everything that a bucket's versions need there, and is it what it should
// be? Blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/session.hpp"

namespace hfd::api {

struct BadObject {
  std::string object;   ///< name on the bucket, or URI and path of a base's file
  std::string version;  ///< id of a version that needs it; empty for a claim of none
  std::string path;  ///< a file of that version that needs it; empty when it is not one of a file
  std::string reason;
};

struct Verification {
  std::uint64_t versions = 0;
  std::uint64_t objects = 0;  ///< delta and blob objects
  std::uint64_t bytes = 0;    ///< of them, read and hashed
  std::vector<BadObject> bad;
};

/// Looks at every version that a ref leads to: its manifest (hash, content), each object it names
/// (size, sha256 of the stored bytes, sha256 of the directory), each file of a base (there, right
/// size). All objects are read once; files are not rebuilt. Of a base: its files are all there, by
/// definition.
Result<Verification> verify_bucket(Session& session);

}  // namespace hfd::api
