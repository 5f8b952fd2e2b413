// SPDX-License-Identifier: Apache-2.0
// How a content is made: picks an edge of its node in the version graph and loads what the edge's
// object says about itself (directory, index pages), verified and kept in bounded caches. Part of rebuild.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "codec/delta_reader.hpp"
#include "rebuild/chunk_fetcher.hpp"
#include "rebuild/flight_cache.hpp"
#include "rebuild/rebuilder.hpp"

namespace hfd::rebuild {

using DirectoryPtr = std::shared_ptr<const codec::DeltaDirectory>;
using PagePtr = std::shared_ptr<const codec::IndexPage>;

/// One content and the edge chosen for it. `content` points into `ref.version`, which is kept alive.
struct Recipe {
  ContentRef ref;
  const lineage::Content* content = nullptr;
  const lineage::Edge* edge = nullptr;
  FetchSource source;
  /// True when the object is a container of blocks (delta, or blob of encoding hfd).
  bool has_blocks() const;
  /// Where directory + footer stand, and what they must hash to. Precondition: has_blocks().
  ByteRange directory_range() const;
  const ContentHash& directory_sha256() const;
};

class ContentIndex {
 public:
  ContentIndex(remote::Remote& bucket, UpstreamFinder upstream, ChunkFetcher& fetcher, Counters& counters);

  /// Finds content and edge. No I/O. not_found when the manifest does not know the content.
  Result<Recipe> recipe(const ContentRef& ref) const;

  /// The directory if it is in memory, else nullptr.
  DirectoryPtr known_directory(const Recipe& recipe) { return directories_.find(PageKey{recipe.source.owner, 0}); }
  /// The directory of a recipe with blocks; fetched again once when its sha256 is wrong.
  void directory(const Recipe& recipe, std::function<void(Result<DirectoryPtr>)> take);
  /// The index page that holds `block`.
  void page(const Recipe& recipe, const DirectoryPtr& directory, std::uint64_t block,
            std::function<void(Result<PagePtr>)> take);

 private:
  struct PageKey {
    std::array<std::byte, 32> object{};
    std::uint32_t page = 0;
    bool operator==(const PageKey&) const = default;
  };
  struct PageKeyHash {
    std::size_t operator()(const PageKey& key) const noexcept;
  };

  /// Counts a bad index, or one that came right on the second try.
  void count(bool good, bool again);
  void load_directory(const Recipe& recipe, bool again, std::function<void(Result<DirectoryPtr>)> take);
  void load_page(const Recipe& recipe, const DirectoryPtr& directory, std::uint32_t page, bool again,
                 std::function<void(Result<PagePtr>)> take);

  /// Entries, not bytes: a directory of a 5 GB shard takes some 100 KB, a page about 50 KB.
  static constexpr std::uint64_t directory_count_max = 128;
  static constexpr std::uint64_t page_count_max = 256;

  remote::Remote& bucket_;
  UpstreamFinder upstream_;
  ChunkFetcher& fetcher_;
  Counters& counters_;
  FlightCache<PageKey, codec::DeltaDirectory, PageKeyHash> directories_;
  FlightCache<PageKey, codec::IndexPage, PageKeyHash> pages_;
};

}  // namespace hfd::rebuild
