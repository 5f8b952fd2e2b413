// SPDX-License-Identifier: Apache-2.0
// The directory of a delta object as plain data, its bytes, and the class behind DeltaDirectory.
// Inside src/codec only; others use delta_reader.hpp. Byte layout: FORMAT.md. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/delta_reader.hpp"
#include "codec/extent_map.hpp"
#include "codec/word_kind.hpp"

namespace hfd::codec {

inline constexpr std::uint8_t format_version_now = 0;
inline constexpr unsigned block_log2_min = 16;
inline constexpr unsigned block_log2_max = 23;
/// Blocks on one page. 512 blocks of 256 KiB = 128 MiB of target behind one read of about 9 KB.
inline constexpr std::uint32_t page_blocks_default = 512;
/// Limits on what a hostile directory can make a reader allocate: about 200 MB in all.
inline constexpr std::uint64_t directory_raw_bytes_max = 64U << 20U;
inline constexpr std::uint64_t extents_max = 1U << 20U;
inline constexpr std::uint64_t pages_max = 1U << 20U;
/// Largest target: 32 TiB, which are pages_max pages of the smallest blocks.
inline constexpr std::uint64_t target_bytes_max = std::uint64_t{1} << 45U;

/// First 8 bytes of the xxh3-128 of a stored page: enough against accidents, and the only hash that
/// counts in objects of a few bytes.
using PageHash = std::array<std::byte, 8>;
PageHash page_hash(base::ByteView stored);

struct PageEntry {
  std::uint64_t stored_bytes = 0;   ///< of the page itself
  std::uint64_t payload_bytes = 0;  ///< of all payloads of its blocks
  PageHash hash{};                  ///< of the stored page; not kept when that is empty
};

struct DirectoryData {
  std::uint64_t target_bytes = 0;
  ContentHash target_sha256;
  std::uint8_t block_log2 = 18;
  std::uint8_t hash_bytes = 16;  ///< stored bytes of each block hash, 8..16
  std::uint32_t page_blocks = page_blocks_default;
  std::uint64_t changed_elements = 0;
  std::uint64_t total_elements = 0;
  std::vector<SourceInfo> sources;
  ClassTables tables;
  ExtentMap extents;
  std::vector<PageEntry> pages;

  std::uint64_t block_count() const;
  ByteRange block_range(std::uint64_t block) const;
};

/// Directory and footer as stored at the end of an object whose payloads and pages took
/// `bytes_before` bytes.
base::Bytes write_directory(const DirectoryData& data, std::uint64_t bytes_before);

class DirectoryView final : public DeltaDirectory {
 public:
  DirectoryView(DirectoryData data, std::uint64_t object_bytes);

  std::uint32_t format_version() const override { return format_version_now; }
  std::uint64_t target_bytes() const override { return data_.target_bytes; }
  const ContentHash& target_sha256() const override { return data_.target_sha256; }
  std::uint32_t block_bytes() const override { return std::uint32_t{1} << data_.block_log2; }
  std::uint64_t block_count() const override { return data_.block_count(); }
  const std::vector<SourceInfo>& sources() const override { return data_.sources; }
  std::uint64_t changed_elements() const override { return data_.changed_elements; }
  std::uint64_t total_elements() const override { return data_.total_elements; }
  std::uint64_t index_bytes() const override { return object_bytes_ - payload_bytes_; }
  std::uint64_t payload_bytes() const override { return payload_bytes_; }
  std::uint32_t page_count() const override {
    return static_cast<std::uint32_t>(data_.pages.size());
  }
  std::uint32_t page_of_block(std::uint64_t block) const override {
    return static_cast<std::uint32_t>(block / data_.page_blocks);
  }
  ByteRange page_range(std::uint32_t page) const override;

  const DirectoryData& data() const { return data_; }
  /// Where the payloads of a page's blocks begin in the object.
  std::uint64_t payload_offset(std::uint32_t page) const { return payload_offsets_[page]; }

 private:
  DirectoryData data_;
  std::uint64_t object_bytes_;
  std::uint64_t payload_bytes_ = 0;
  std::vector<std::uint64_t> payload_offsets_;
  std::vector<std::uint64_t> page_offsets_;
};

}  // namespace hfd::codec
