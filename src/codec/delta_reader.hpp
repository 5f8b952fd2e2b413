// SPDX-License-Identifier: Apache-2.0
// The read side of a delta object (.hfd): from the object's last bytes to one rebuilt block of the
// target, without I/O. rebuild and api fetch the bytes this asks for and hand them in. An object
// without sources is an anchor ("blob" of encoding hfd). All input is hostile: every count, offset,
// length and ratio is checked before use or allocation. Layout: FORMAT.md. Pure; immutable objects,
// safe from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hfdeltafs/types.hpp"

#include "base/bytes.hpp"
#include "base/hash.hpp"

namespace hfd::codec {

/// Bytes of the fixed footer at the end of every object; enough to find the directory.
inline constexpr std::uint64_t footer_bytes = 64;
/// First guess of how much of the tail to fetch: holds footer, directory and index of most objects.
inline constexpr std::uint64_t tail_guess_bytes = 64U << 10U;

/// One content that a delta is applied to.
struct SourceInfo {
  ContentHash sha256;
  std::uint64_t bytes = 0;
};

enum class BlockMode : std::uint8_t { same = 0, sparse = 1, dense = 2, raw = 3, zero = 4 };

/// `range` of source number `source`; where its bytes stand in the block's source buffer is the sum
/// of the sizes before it.
struct SourceSpan {
  std::uint32_t source = 0;
  ByteRange range;
};

/// Everything needed to rebuild one block.
struct BlockPlan {
  std::uint64_t block = 0;  ///< number of the block in the target
  ByteRange target;         ///< where it stands in the target
  BlockMode mode = BlockMode::raw;
  ByteRange payload;                ///< where its coded bytes stand in the object; may be empty
  std::vector<SourceSpan> sources;  ///< source bytes the decoder needs, in this order; may be empty
  base::Xxh128 hash{};              ///< xxh3-128 of the rebuilt block (not set for mode zero)
  /// For raw blocks that continue a stream begun by an earlier block: `payload` starts with that
  /// block, and this many bytes come out before ours. 0 for all other blocks.
  std::uint64_t skip_bytes = 0;
  bool chained = false;  ///< true when the payload is such a stream (also its first block)
  std::uint64_t source_bytes() const;
};

/// How many blocks use each mode; for `delta info`.
struct ModeCounts {
  std::uint64_t same = 0, sparse = 0, dense = 0, raw = 0, zero = 0;
};

/// The directory of one object: target, sources, extents, class tables, index pages.
class DeltaDirectory {
 public:
  /// What the footer says: where directory and index stand. `corrupt` when it is no footer.
  /// `footer` is the last footer_bytes bytes of an object of `object_bytes` bytes.
  static Result<ByteRange> directory_range(base::ByteView footer, std::uint64_t object_bytes);
  /// Parses the directory from its stored bytes (footer included at the end: the range that
  /// directory_range gave).
  static Result<std::shared_ptr<const DeltaDirectory>> parse(base::ByteView stored,
                                                             std::uint64_t object_bytes);
  virtual ~DeltaDirectory() = default;

  virtual std::uint32_t format_version() const = 0;
  virtual std::uint64_t target_bytes() const = 0;
  virtual const ContentHash& target_sha256() const = 0;
  virtual std::uint32_t block_bytes() const = 0;
  virtual std::uint64_t block_count() const = 0;
  virtual const std::vector<SourceInfo>& sources() const = 0;
  virtual std::uint64_t changed_elements() const = 0;
  virtual std::uint64_t total_elements() const = 0;
  /// Bytes of directory + index pages + footer, and of all payloads.
  virtual std::uint64_t index_bytes() const = 0;
  virtual std::uint64_t payload_bytes() const = 0;

  virtual std::uint32_t page_count() const = 0;
  virtual std::uint32_t page_of_block(std::uint64_t block) const = 0;
  /// Where a page stands in the object.
  virtual ByteRange page_range(std::uint32_t page) const = 0;
};

/// One page of the block index.
class IndexPage {
 public:
  /// Verifies the page against the hash in its directory.
  static Result<std::shared_ptr<const IndexPage>> parse(
      std::shared_ptr<const DeltaDirectory> directory, std::uint32_t page, base::ByteView stored);
  virtual ~IndexPage() = default;
  /// Precondition: the block is on this page.
  virtual BlockPlan plan(std::uint64_t block) const = 0;
  virtual ModeCounts mode_counts() const = 0;
};

/// Rebuilds one block and checks its hash. `payload` are the bytes of plan.payload, `source` the
/// bytes of plan.sources one after the other, `out` is exactly plan.target.size bytes. Wrong source
/// bytes or damaged payload: `corrupt`, and `out` holds garbage.
Result<void> decode_block(const DeltaDirectory& directory, const BlockPlan& plan,
                          base::ByteView payload, base::ByteView source, base::ByteSpan out);

}  // namespace hfd::codec
