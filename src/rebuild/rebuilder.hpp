// SPDX-License-Identifier: Apache-2.0
// content + byte range -> bytes. The heart of reading: finds the cheapest way to make a content,
// fetches what that needs (through the chunk cache), decodes block by block, verifies each, and keeps
// a bounded pool of decoded blocks. One rebuild a block at a time, however many readers want it
// (single flight). Requests are answered by completion: no caller ever waits inside read().
//
// Used by vfs, publish (through open()) and api. Never writes to a remote.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "base/file.hpp"
#include "lineage/bucket.hpp"
#include "lineage/manifest.hpp"
#include "remote/remote.hpp"
#include "store/chunk_store.hpp"

namespace hfd::rebuild {

/// A content and a version whose manifest says how to make it.
struct ContentRef {
  lineage::VersionPtr version;
  ContentHash sha256;
};

struct RebuildOptions {
  /// Decoded blocks kept for the next reader; the kernel's page cache does the rest.
  std::uint64_t pool_bytes_max = 48ULL << 20U;
  /// Requests worked on at once, in all and for one content: the second keeps a stuck object from
  /// taking every place. Further requests queue; the kernel bounds them (max_background).
  std::size_t active_max = 32;
  std::size_t active_per_content_max = 12;
  std::size_t decode_threads = 2;
  std::chrono::milliseconds deadline{60'000};
  /// How far ahead of a sequential reader blocks are rebuilt.
  std::uint64_t read_ahead_bytes_max = 8ULL << 20U;
};

struct Counters {
  std::atomic<std::uint64_t> blocks_rebuilt{0};
  std::atomic<std::uint64_t> blocks_bad{0};     ///< failed their hash
  std::atomic<std::uint64_t> blocks_healed{0};  ///< right after fetching again past the cache
};

using ReadDone = std::function<void(Result<base::Bytes>)>;

/// Finds the remote that a base's files come from. Called from any thread; must not block on a network.
using UpstreamFinder = std::function<Result<remote::Remote*>(const lineage::UpstreamEdge&)>;

class Rebuilder {
 public:
  /// `cache` may be null (everything is fetched anew). All references must outlive this object.
  static std::unique_ptr<Rebuilder> create(remote::Remote& bucket, UpstreamFinder upstream, store::ChunkStore* cache,
                                           const RebuildOptions& options);
  /// Waits for requests under way.
  virtual ~Rebuilder() = default;

  /// Bytes of a content. `range` must lie within it. `done` runs once, on a thread of this object or
  /// on the caller's before read() returns (when the bytes are at hand); it must not block. Errors:
  /// corrupt (bytes are not what the manifest says, after fetching again), unavailable, not_found.
  virtual void read(const ContentRef& content, ByteRange range, ReadDone done) = 0;

  /// A content as ReadableBytes whose read_at() blocks. Never for FUSE threads or threads of this object.
  std::unique_ptr<base::ReadableBytes> open(const ContentRef& content);

  /// The same as read(), but waits. Not for FUSE threads.
  Result<base::Bytes> read_blocking(const ContentRef& content, ByteRange range);

  virtual const Counters& counters() const = 0;
};

}  // namespace hfd::rebuild
