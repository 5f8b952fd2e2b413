// SPDX-License-Identifier: Apache-2.0
#include "rebuild/content_index.hpp"

#include <cstring>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace hfd::rebuild {
namespace {

using lineage::BlobEdge;
using lineage::DeltaEdge;
using lineage::UpstreamEdge;

/// Stored bytes of a directory that we are willing to hold; the extents of 400,000 tensors fit.
constexpr std::uint64_t directory_bytes_max = 64ULL << 20U;

template <class T>
std::uint64_t weigh_one(const T& /*value*/) {
  return 1;
}

/// The cache's name for an upstream file: its content, so that two URIs of one base share it.
store::ChunkOwner upstream_owner(const ContentHash& sha256) { return sha256.bytes; }

}  // namespace

bool Recipe::has_blocks() const {
  if (std::holds_alternative<DeltaEdge>(*edge)) {
    return true;
  }
  const auto* blob = std::get_if<BlobEdge>(edge);
  return blob != nullptr && blob->encoding == BlobEdge::Encoding::hfd;
}

ByteRange Recipe::directory_range() const {
  if (const auto* delta = std::get_if<DeltaEdge>(edge)) {
    return delta->directory;
  }
  const auto* blob = std::get_if<BlobEdge>(edge);
  HFD_CHECK(blob != nullptr);
  return blob->directory;
}

const ContentHash& Recipe::directory_sha256() const {
  if (const auto* delta = std::get_if<DeltaEdge>(edge)) {
    return delta->directory_sha256;
  }
  const auto* blob = std::get_if<BlobEdge>(edge);
  HFD_CHECK(blob != nullptr);
  return blob->directory_sha256;
}

std::size_t ContentIndex::PageKeyHash::operator()(const PageKey& key) const noexcept {
  std::size_t value = 0;
  std::memcpy(&value, key.object.data(), sizeof value);
  return value ^ (static_cast<std::size_t>(key.page) * 0x9E3779B97F4A7C15ULL);
}

ContentIndex::ContentIndex(remote::Remote& bucket, UpstreamFinder upstream, ChunkFetcher& fetcher,
                           Counters& counters)
    : bucket_(bucket),
      upstream_(std::move(upstream)),
      fetcher_(fetcher),
      counters_(counters),
      directories_(directory_count_max, weigh_one<codec::DeltaDirectory>),
      pages_(page_count_max, weigh_one<codec::IndexPage>) {}

Result<Recipe> ContentIndex::recipe(const ContentRef& ref) const {
  const auto& contents = ref.version->manifest.contents;
  const auto found = contents.find(ref.sha256);
  if (found == contents.end() || found->second.edges.empty()) {
    return Error{ErrorCode::not_found, "the version does not say how to make a content", ref.sha256.hex()};
  }
  Recipe recipe{ref, &found->second, &found->second.edges.front(), {}};
  if (const auto* upstream = std::get_if<UpstreamEdge>(recipe.edge)) {
    HFD_TRY(remote::Remote * remote, upstream_(*upstream));
    recipe.source = {remote, upstream->path, recipe.content->bytes, upstream_owner(ref.sha256)};
  } else if (const auto* delta = std::get_if<DeltaEdge>(recipe.edge)) {
    recipe.source = {&bucket_, lineage::object_of(*recipe.edge), delta->object_bytes, delta->object.bytes};
  } else if (const auto* blob = std::get_if<BlobEdge>(recipe.edge)) {
    recipe.source = {&bucket_, lineage::object_of(*recipe.edge), blob->object_bytes, blob->object.bytes};
  }
  return recipe;
}

void ContentIndex::count(bool good, bool again) {
  counters_.blocks_bad.fetch_add(good ? 0 : 1);
  counters_.blocks_healed.fetch_add(good && again ? 1 : 0);
}

void ContentIndex::directory(const Recipe& recipe, std::function<void(Result<DirectoryPtr>)> take) {
  const PageKey key{recipe.source.owner, 0};
  directories_.get(
      key, [this, recipe](auto loaded) { load_directory(recipe, false, std::move(loaded)); }, std::move(take));
}

void ContentIndex::load_directory(const Recipe& recipe, bool again, std::function<void(Result<DirectoryPtr>)> take) {
  const ByteRange range = recipe.directory_range();
  if (range.size > directory_bytes_max) {
    take(Error{ErrorCode::corrupt, "the directory of an object is too large", recipe.source.name});
    return;
  }
  auto stored = std::make_shared<base::Bytes>(range.size);
  const base::ByteSpan out(*stored);
  fetcher_.read_into(
      recipe.source, range, out, [this, recipe, again, stored, take = std::move(take)](Result<void> read) mutable {
        if (!read.ok()) {
          take(std::move(read).error().on(recipe.source.name));
          return;
        }
        Result<DirectoryPtr> parsed = Error{ErrorCode::corrupt, "the directory of an object has the wrong sha256"};
        if (base::sha256(*stored) == recipe.directory_sha256().bytes) {
          parsed = codec::DeltaDirectory::parse(*stored, recipe.source.bytes);
        }
        if (parsed.ok() && ((*parsed)->target_sha256() != recipe.ref.sha256 ||
                            (*parsed)->target_bytes() != recipe.content->bytes)) {
          parsed = Error{ErrorCode::corrupt, "an object makes another content than its manifest says"};
        }
        count(parsed.ok(), again);
        if (!parsed.ok() && !again) {
          fetcher_.drop(recipe.source, recipe.directory_range());
          load_directory(recipe, true, std::move(take));
          return;
        }
        take(std::move(parsed).on(recipe.source.name));
      });
}

void ContentIndex::page(const Recipe& recipe, const DirectoryPtr& directory, std::uint64_t block,
                        std::function<void(Result<PagePtr>)> take) {
  const std::uint32_t page = directory->page_of_block(block);
  pages_.get(
      PageKey{recipe.source.owner, page},
      [this, recipe, directory, page](auto loaded) { load_page(recipe, directory, page, false, std::move(loaded)); },
      std::move(take));
}

void ContentIndex::load_page(const Recipe& recipe, const DirectoryPtr& directory, std::uint32_t page, bool again,
                             std::function<void(Result<PagePtr>)> take) {
  const ByteRange range = directory->page_range(page);
  auto stored = std::make_shared<base::Bytes>(range.size);
  const base::ByteSpan out(*stored);
  fetcher_.read_into(recipe.source, range, out,
                     [this, recipe, directory, page, again, stored, take = std::move(take)](Result<void> read) mutable {
                       if (!read.ok()) {
                         take(std::move(read).error().on(recipe.source.name));
                         return;
                       }
                       auto parsed = codec::IndexPage::parse(directory, page, *stored);
                       count(parsed.ok(), again);
                       if (!parsed.ok() && !again) {
                         fetcher_.drop(recipe.source, directory->page_range(page));
                         load_page(recipe, directory, page, true, std::move(take));
                         return;
                       }
                       take(std::move(parsed).on(recipe.source.name));
                     });
}

}  // namespace hfd::rebuild
