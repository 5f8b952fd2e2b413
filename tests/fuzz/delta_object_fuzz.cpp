// SPDX-License-Identifier: Apache-2.0
// The delta reader on arbitrary bytes. Checksums would stop nearly every mutation at the door, so the
// input is taken two ways: as an object as it is, and as the parts of an object whose checksums are
// then made right: byte 0 picks a layout, the rest is the payload of one block. Sources are made-up
// bytes. Memory is bounded: objects that ask for more than a few MiB a block are not decoded.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "codec/block_codec.hpp"
#include "codec/delta_reader.hpp"
#include "codec/directory.hpp"
#include "codec/index_page.hpp"

namespace {

using hfd::base::Bytes;
using hfd::base::ByteView;
using namespace hfd::codec;  // NOLINT(google-build-using-namespace): the target is about it

constexpr std::uint64_t block_work_max = 4U << 20U;
constexpr std::uint64_t blocks_tried_max = 16;

Bytes made_up_source(std::uint64_t size) {
  Bytes bytes(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 0x9E3779B1U >> 13U);
  }
  return bytes;
}

void decode_page(const std::shared_ptr<const DeltaDirectory>& directory, std::uint32_t page,
                 ByteView object) {
  const hfd::ByteRange range = directory->page_range(page);
  if (!range.within(object.size())) {
    return;
  }
  const auto index = IndexPage::parse(directory, page, object.subspan(range.offset, range.size));
  if (!index.ok()) {
    return;
  }
  static_cast<void>((*index)->mode_counts());
  std::uint64_t tried = 0;
  for (std::uint64_t block = 0; block < directory->block_count() && tried < blocks_tried_max;
       ++block) {
    if (directory->page_of_block(block) != page) {
      continue;
    }
    ++tried;
    const BlockPlan plan = (*index)->plan(block);
    if (plan.target.size > block_work_max || plan.source_bytes() > block_work_max ||
        plan.skip_bytes > block_work_max || !plan.payload.within(object.size())) {
      continue;
    }
    const Bytes source = made_up_source(plan.source_bytes());
    Bytes out(static_cast<std::size_t>(plan.target.size));
    const ByteView payload = object.subspan(plan.payload.offset, plan.payload.size);
    static_cast<void>(decode_block(*directory, plan, payload, source, out).ok());
  }
}

void read_object(ByteView object) {
  if (object.size() < footer_bytes) {
    return;
  }
  const auto range = DeltaDirectory::directory_range(object.last(footer_bytes), object.size());
  if (!range.ok()) {
    return;
  }
  const auto directory =
      DeltaDirectory::parse(object.subspan(range->offset, range->size), object.size());
  if (!directory.ok()) {
    return;
  }
  const std::uint32_t pages = std::min<std::uint32_t>((*directory)->page_count(), 4);
  for (std::uint32_t page = 0; page < pages; ++page) {
    decode_page(*directory, page, object);
  }
}

/// The same object with the footer's checksum and sizes made right.
void read_repaired(ByteView object) {
  if (object.size() < footer_bytes) {
    return;
  }
  Bytes copy(object.begin(), object.end());
  std::byte* footer = copy.data() + copy.size() - footer_bytes;
  hfd::base::store_le(footer + 56, std::uint64_t{copy.size()});
  const std::uint64_t stored = hfd::base::load_le<std::uint32_t>(footer + 48);
  if (stored > copy.size() - footer_bytes) {
    return;
  }
  hfd::base::store_le(footer + 40, std::uint64_t{0});
  const auto check =
      hfd::base::xxh3_128(ByteView(copy).last(static_cast<std::size_t>(stored + footer_bytes)));
  std::copy_n(check.begin(), 8, footer + 40);
  read_object(copy);
}

/// Decodes `payload` as one block of a made-up layout.
void read_payload(std::uint8_t choice, ByteView payload) {
  const auto kind = static_cast<WordKind>(choice % word_kind_count);
  ExtentMap extents;
  extents.push_back({{0, 300}, ExtentUse::text, WordKind::w1, 0, {0, 500}});
  extents.push_back({{301, 4096}, ExtentUse::mapped, kind, 0, {1000, 4096}});
  extents.push_back({{4397, 800}, ExtentUse::literal, kind, 0, {}});
  ClassTables tables;
  tables.at(choice % word_kind_count) = {{0, 3, 60, 120}, {4, 3, 2, 9}, {0, 1, 2, 3}};
  const auto mode = static_cast<BlockMode>(1 + choice / word_kind_count % 3);
  const BlockLayout layout = block_layout(extents, {0, 6000}, mode != BlockMode::raw);
  const Bytes source = made_up_source(layout.source_bytes);
  Bytes out(6000);
  static_cast<void>(decode_payload(layout, tables, mode, payload, source, out).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView bytes = std::as_bytes(std::span(data, size));
  read_object(bytes);
  read_repaired(bytes);
  if (size > 1) {
    read_payload(data[0], bytes.subspan(1));
  }
  return 0;
}
