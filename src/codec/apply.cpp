// SPDX-License-Identifier: Apache-2.0
#include "codec/apply.hpp"

#include <string>
#include <utility>

#include "base/hash.hpp"

namespace hfd::codec {
namespace {

Result<base::Bytes> read_range(base::ReadableBytes& file, ByteRange range) {
  base::Bytes bytes(static_cast<std::size_t>(range.size));
  HFD_TRY_VOID(file.read_at(range.offset, bytes));
  return bytes;
}

Result<std::shared_ptr<const IndexPage>> read_page(
    base::ReadableBytes& object, const std::shared_ptr<const DeltaDirectory>& directory,
    std::uint32_t page) {
  HFD_TRY(const base::Bytes stored, read_range(object, directory->page_range(page)));
  return IndexPage::parse(directory, page, stored);
}

Result<void> check_sources(const DeltaDirectory& directory,
                           const std::vector<base::ReadableBytes*>& sources) {
  const std::vector<SourceInfo>& wanted = directory.sources();
  if (sources.size() != wanted.size()) {
    return Error{ErrorCode::invalid_argument, "the delta needs " + std::to_string(wanted.size()) +
                                                  " sources, not " +
                                                  std::to_string(sources.size())};
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (sources[i]->size() != wanted[i].bytes) {
      return Error{ErrorCode::corrupt, "a source has another size than the delta was made against",
                   wanted[i].sha256.hex()};
    }
  }
  return {};
}

Result<base::Bytes> rebuild(base::ReadableBytes& object, const DeltaDirectory& directory,
                            const BlockPlan& plan,
                            const std::vector<base::ReadableBytes*>& sources) {
  HFD_TRY(const base::Bytes payload, read_range(object, plan.payload));
  base::Bytes source(static_cast<std::size_t>(plan.source_bytes()));
  std::size_t at = 0;
  for (const SourceSpan& span : plan.sources) {
    const auto size = static_cast<std::size_t>(span.range.size);
    HFD_TRY_VOID(
        sources[span.source]->read_at(span.range.offset, base::ByteSpan(source).subspan(at, size)));
    at += size;
  }
  base::Bytes block(static_cast<std::size_t>(plan.target.size));
  HFD_TRY_VOID(decode_block(directory, plan, payload, source, block));
  return block;
}

}  // namespace

Result<std::shared_ptr<const DeltaDirectory>> read_directory(base::ReadableBytes& object) {
  if (object.size() < footer_bytes) {
    return Error{ErrorCode::corrupt, "not a delta object"};
  }
  HFD_TRY(const base::Bytes footer,
          read_range(object, {object.size() - footer_bytes, footer_bytes}));
  HFD_TRY(const ByteRange range, DeltaDirectory::directory_range(footer, object.size()));
  HFD_TRY(const base::Bytes stored, read_range(object, range));
  return DeltaDirectory::parse(stored, object.size());
}

Result<void> apply_delta(base::ReadableBytes& object,
                         const std::vector<base::ReadableBytes*>& sources,
                         const base::ByteSink& out) {
  HFD_TRY(const std::shared_ptr<const DeltaDirectory> directory, read_directory(object));
  HFD_TRY_VOID(check_sources(*directory, sources));
  base::Sha256 hash;
  std::uint64_t block = 0;
  for (std::uint32_t page = 0; page < directory->page_count(); ++page) {
    HFD_TRY(const std::shared_ptr<const IndexPage> index, read_page(object, directory, page));
    for (; block < directory->block_count() && directory->page_of_block(block) == page; ++block) {
      HFD_TRY(const base::Bytes bytes, rebuild(object, *directory, index->plan(block), sources));
      hash.update(bytes);
      HFD_TRY_VOID(out(bytes));
    }
  }
  if (ContentHash{hash.finish()} != directory->target_sha256()) {
    return Error{ErrorCode::corrupt, "the rebuilt target has another sha256 than the delta says"};
  }
  return {};
}

Result<DeltaInfo> delta_info(base::ReadableBytes& object) {
  HFD_TRY(const std::shared_ptr<const DeltaDirectory> directory, read_directory(object));
  DeltaInfo info;
  info.format_version = directory->format_version();
  info.target_bytes = directory->target_bytes();
  info.target_sha256 = directory->target_sha256();
  info.sources = directory->sources();
  info.block_bytes = directory->block_bytes();
  info.blocks = directory->block_count();
  info.index_bytes = directory->index_bytes();
  info.payload_bytes = directory->payload_bytes();
  info.object_bytes = object.size();
  info.changed_elements = directory->changed_elements();
  info.total_elements = directory->total_elements();
  for (std::uint32_t page = 0; page < directory->page_count(); ++page) {
    HFD_TRY(const std::shared_ptr<const IndexPage> index, read_page(object, directory, page));
    const ModeCounts counts = index->mode_counts();
    info.modes.same += counts.same;
    info.modes.sparse += counts.sparse;
    info.modes.dense += counts.dense;
    info.modes.raw += counts.raw;
    info.modes.zero += counts.zero;
  }
  return info;
}

}  // namespace hfd::codec
