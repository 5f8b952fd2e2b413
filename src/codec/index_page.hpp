// SPDX-License-Identifier: Apache-2.0
// One page of the block index: mode, payload length and hash of up to page_blocks blocks. Writer
// and the class behind IndexPage. Inside src/codec only. Byte layout: FORMAT.md. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/delta_reader.hpp"
#include "codec/directory.hpp"

namespace hfd::codec {

struct BlockEntry {
  BlockMode mode = BlockMode::raw;
  std::uint64_t payload_bytes = 0;
  base::Xxh128 hash{};
  bool chained = false;
  std::uint64_t back_blocks = 0;  ///< chained: blocks of the stream before this one
  std::uint64_t back_bytes = 0;   ///< chained: their payload bytes
};

/// Bytes of a page as stored; hashes are cut to hash_bytes. A page of zero blocks only is empty.
base::Bytes write_page(const std::vector<BlockEntry>& entries, unsigned hash_bytes);

class PageView final : public IndexPage {
 public:
  PageView(std::shared_ptr<const DirectoryView> directory, std::uint32_t page,
           std::vector<BlockEntry> entries);
  BlockPlan plan(std::uint64_t block) const override;
  ModeCounts mode_counts() const override;

 private:
  std::shared_ptr<const DirectoryView> directory_;
  std::uint64_t first_block_;
  std::vector<BlockEntry> entries_;
  std::vector<std::uint64_t> payload_offsets_;
};

}  // namespace hfd::codec
