// SPDX-License-Identifier: Apache-2.0
// Hashes. sha256 (OpenSSL) names things and carries trust; xxh3-128 guards against accidents only.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "base/bytes.hpp"
#include "hfdeltafs/types.hpp"

namespace hfd::base {

/// Streaming sha256. Not thread-safe; movable.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(ByteView bytes);
  /// The digest of all bytes so far. The object must not be used afterwards.
  std::array<std::byte, 32> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::array<std::byte, 32> sha256(ByteView bytes);
inline ContentHash content_hash(ByteView bytes) { return {sha256(bytes)}; }
inline ObjectId object_id(ByteView bytes) { return {sha256(bytes)}; }
inline VersionId version_id(ByteView bytes) { return {sha256(bytes)}; }

/// XXH3-128 with seed 0, in canonical (big-endian) byte order as `xxh128sum` prints it.
using Xxh128 = std::array<std::byte, 16>;
Xxh128 xxh3_128(ByteView bytes);

}  // namespace hfd::base
