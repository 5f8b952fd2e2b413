// SPDX-License-Identifier: Apache-2.0
#include "rebuild/rebuilder.hpp"

#include <future>

#include <doctest/doctest.h>

#include "publish/publisher_fixture.hpp"
#include "rebuild/fake_remote.hpp"

namespace hfd::rebuild {
namespace {

using test::FakeRemote;
using test::matrix;
using test::safetensors;
using test::Tree;

constexpr std::uint64_t block_bytes = 256U << 10U;
constexpr std::chrono::seconds patience{60};
constexpr const char* model = "model.safetensors";

/// Every `step`-th 16-bit word one higher: a delta of many changes, so that its payload is long.
std::string nudged(std::string text, std::size_t step) {
  for (std::size_t i = text.size() / 2; i < text.size(); i += 2 * step) {
    text[i] = static_cast<char>(text[i] + 1);
  }
  return text;
}

/// A bucket of two versions: the model of the second is a delta against that of the first.
struct TwoVersions {
  test::PublisherFixture publisher;
  Tree parent_tree{{model, safetensors({matrix("w", 1300, 1)})},
                   {"other.safetensors", safetensors({matrix("v", 1300, 2)})},
                   {"notes.txt", "small and kept whole"}};
  Tree head_tree = parent_tree;
  lineage::VersionPtr parent;
  lineage::VersionPtr head;
  std::unique_ptr<store::ChunkStore> cache;

  TwoVersions() {
    head_tree[model] = nudged(parent_tree[model], 3);
    parent = publisher.publish(parent_tree).version;
    head = publisher.publish(head_tree).version;
    REQUIRE(std::holds_alternative<lineage::DeltaEdge>(edge(model)));
  }
  store::ChunkStore* open_cache() {
    auto opened = store::ChunkStore::open({.folder = publisher.folder / "cache"});
    REQUIRE(opened.ok());
    cache = std::move(*opened);
    return cache.get();
  }
  ContentHash hash(const std::string& path) const {
    return base::content_hash(base::as_bytes(head_tree.at(path)));
  }
  ContentRef ref(const std::string& path) const { return {head, hash(path)}; }
  const lineage::Edge& edge(const std::string& path) const {
    return head->manifest.contents.at(hash(path)).edges.front();
  }
  std::string object(const std::string& path) const { return lineage::object_of(edge(path)); }
  std::uint64_t object_bytes(const std::string& path) const {
    return std::filesystem::file_size(publisher.bucket_path + "/" + object(path));
  }
  void flip_on_disk(const std::string& path, std::uint64_t offset) const {
    const std::string file = publisher.bucket_path + "/" + object(path);
    auto bytes = base::read_file(file, 1U << 30U);
    REQUIRE(bytes.ok());
    REQUIRE(offset < bytes->size());
    (*bytes)[offset] ^= std::byte{0x10};
    REQUIRE(base::replace_file(file, *bytes).ok());
  }
};

UpstreamFinder no_upstream() {
  return [](const lineage::UpstreamEdge& edge) -> Result<remote::Remote*> {
    return Error{ErrorCode::not_found, "no base here", edge.uri};
  };
}

std::unique_ptr<Rebuilder> over(remote::Remote& remote, store::ChunkStore* cache) {
  RebuildOptions options;
  options.read_ahead_bytes_max = 0;  // requests are counted
  return Rebuilder::create(remote, no_upstream(), cache, options);
}

std::future<Result<base::Bytes>> start(Rebuilder& rebuilder, const ContentRef& content, ByteRange range) {
  const auto promise = std::make_shared<std::promise<Result<base::Bytes>>>();
  auto future = promise->get_future();
  rebuilder.read(content, range,
                 [promise](Result<base::Bytes> bytes) { promise->set_value(std::move(bytes)); });
  return future;
}

void check_read(Rebuilder& rebuilder, const ContentRef& content, ByteRange range, const std::string& text) {
  INFO("range " << range.offset << " + " << range.size);
  const auto bytes = rebuilder.read_blocking(content, range);
  INFO((bytes.ok() ? std::string() : bytes.error().message + " / " + bytes.error().object));
  REQUIRE(bytes.ok());
  CHECK(base::as_text(*bytes) == std::string_view(text).substr(range.offset, range.size));
}

std::vector<ByteRange> odd_ranges(std::uint64_t bytes) {
  return {{0, 1},
          {1, 7},
          {block_bytes - 1, 2},
          {block_bytes, block_bytes},
          {bytes / 3, bytes / 2},
          {bytes - 1, 1},
          {bytes, 0},
          {0, bytes}};
}

TEST_SUITE("rebuild/rebuilder") {
  TEST_CASE("every range of head and parent has the exact bytes, with and without a cache") {
    TwoVersions f;
    for (store::ChunkStore* cache : {static_cast<store::ChunkStore*>(nullptr), f.open_cache()}) {
      for (const auto& [version, tree] : {std::pair{f.head, f.head_tree}, std::pair{f.parent, f.parent_tree}}) {
        const auto rebuilder = over(f.publisher.session->remote(), cache);
        const std::string& text = tree.at(model);
        const ContentRef content{version, base::content_hash(base::as_bytes(text))};
        for (const ByteRange range : odd_ranges(text.size())) {
          check_read(*rebuilder, content, range, text);
        }
        CHECK(rebuilder->counters().blocks_bad.load() == 0);
      }
    }
  }

  TEST_CASE("sequential small reads with read-ahead have the exact bytes") {
    TwoVersions f;
    const auto rebuilder = Rebuilder::create(f.publisher.session->remote(), no_upstream(), f.open_cache(), {});
    const std::string& text = f.head_tree[model];
    constexpr std::uint64_t step = 100'001;
    for (std::uint64_t offset = 0; offset < text.size(); offset += step) {
      check_read(*rebuilder, f.ref(model), {offset, std::min(step, text.size() - offset)}, text);
    }
  }

  TEST_CASE("a small file kept whole is read like any other") {
    TwoVersions f;
    const auto rebuilder = over(f.publisher.session->remote(), nullptr);
    check_read(*rebuilder, f.ref("notes.txt"), {6, 3}, f.head_tree["notes.txt"]);
  }

  TEST_CASE("open() gives a content as bytes with its size") {
    TwoVersions f;
    const auto rebuilder = over(f.publisher.session->remote(), nullptr);
    const auto bytes = rebuilder->open(f.ref(model));
    REQUIRE(bytes->size() == f.head_tree[model].size());
    std::string out(1000, '\0');
    REQUIRE(bytes->read_at(777, std::as_writable_bytes(std::span(out.data(), out.size()))).ok());
    CHECK(out == f.head_tree[model].substr(777, 1000));
  }

  TEST_CASE("a chain of deltas rebuilds its newest content") {
    test::PublisherFixture publisher;
    Tree tree{{model, safetensors({matrix("w", 1100, 1)})}};
    lineage::VersionPtr version = publisher.publish(tree).version;
    for (std::size_t step = 5; step < 9; ++step) {
      tree[model] = nudged(tree[model], step);
      version = publisher.publish(tree).version;
    }
    const auto rebuilder = over(publisher.session->remote(), nullptr);
    const ContentRef content{version, base::content_hash(base::as_bytes(tree[model]))};
    for (const ByteRange range : odd_ranges(tree[model].size())) {
      check_read(*rebuilder, content, range, tree[model]);
    }
  }

  TEST_CASE("a payload damaged on the remote is corrupt and names its object") {
    TwoVersions f;
    f.flip_on_disk(model, f.object_bytes(model) / 2);
    const auto rebuilder = over(f.publisher.session->remote(), f.open_cache());
    const auto bytes = rebuilder->read_blocking(f.ref(model), {0, f.head_tree[model].size()});
    REQUIRE_FALSE(bytes.ok());
    CHECK(bytes.error().code == ErrorCode::corrupt);
    CHECK(bytes.error().object == f.object(model));
    CHECK(bytes.error().message.find("block ") != std::string::npos);
    CHECK(rebuilder->counters().blocks_bad.load() == 2);  // fetched again once
    CHECK(rebuilder->counters().blocks_healed.load() == 0);
    check_read(*rebuilder, f.ref("other.safetensors"), {9, 99}, f.head_tree["other.safetensors"]);
  }

  TEST_CASE("a directory damaged on the remote is corrupt and names its object") {
    TwoVersions f;
    const auto& delta = std::get<lineage::DeltaEdge>(f.edge(model));
    f.flip_on_disk(model, delta.directory.offset + delta.directory.size / 2);
    const auto rebuilder = over(f.publisher.session->remote(), f.open_cache());
    const auto bytes = rebuilder->read_blocking(f.ref(model), {0, 1});
    REQUIRE_FALSE(bytes.ok());
    CHECK(bytes.error().code == ErrorCode::corrupt);
    CHECK(bytes.error().object == f.object(model));
  }

  TEST_CASE("a damaged source of a delta is corrupt and names the source's object") {
    TwoVersions f;
    const auto& source = f.parent->manifest.contents.at(
        base::content_hash(base::as_bytes(f.parent_tree[model])));
    const std::string name = lineage::object_of(source.edges.front());
    const std::string file = f.publisher.bucket_path + "/" + name;
    auto stored = base::read_file(file, 1U << 30U);
    REQUIRE(stored.ok());
    (*stored)[stored->size() / 2] ^= std::byte{1};
    REQUIRE(base::replace_file(file, *stored).ok());
    const auto rebuilder = over(f.publisher.session->remote(), nullptr);
    const auto bytes = rebuilder->read_blocking(f.ref(model), {0, f.head_tree[model].size()});
    REQUIRE_FALSE(bytes.ok());
    CHECK(bytes.error().code == ErrorCode::corrupt);
    CHECK(bytes.error().object == name);
  }

  TEST_CASE("a missing object is not_found and named, and is found when it is back") {
    TwoVersions f;
    const std::string file = f.publisher.bucket_path + "/" + f.object(model);
    std::filesystem::rename(file, file + ".away");
    const auto rebuilder = over(f.publisher.session->remote(), nullptr);
    const auto bytes = rebuilder->read_blocking(f.ref(model), {0, 1});
    REQUIRE_FALSE(bytes.ok());
    CHECK(bytes.error().code == ErrorCode::not_found);
    CHECK(bytes.error().object.find(f.object(model)) != std::string::npos);
    std::filesystem::rename(file + ".away", file);
    check_read(*rebuilder, f.ref(model), {0, 1}, f.head_tree[model]);
  }

  TEST_CASE("a payload that came damaged once heals, with and without a cache") {
    TwoVersions f;
    for (store::ChunkStore* cache : {static_cast<store::ChunkStore*>(nullptr), f.open_cache()}) {
      FakeRemote remote;
      remote.copy_from(f.publisher.session->remote(), "hfdelta");
      remote.flip(f.object(model), f.object_bytes(model) / 2, 1);
      const auto rebuilder = over(remote, cache);
      check_read(*rebuilder, f.ref(model), {0, f.head_tree[model].size()}, f.head_tree[model]);
      CHECK(rebuilder->counters().blocks_bad.load() == 1);
      CHECK(rebuilder->counters().blocks_healed.load() == 1);
    }
  }

  TEST_CASE("a directory that came damaged once heals") {
    TwoVersions f;
    FakeRemote remote;
    remote.copy_from(f.publisher.session->remote(), "hfdelta");
    remote.flip(f.object(model), std::get<lineage::DeltaEdge>(f.edge(model)).directory.offset + 1, 1);
    const auto rebuilder = over(remote, f.open_cache());
    check_read(*rebuilder, f.ref(model), {0, 100}, f.head_tree[model]);
    CHECK(rebuilder->counters().blocks_healed.load() == 1);
  }

  TEST_CASE("a small file that came damaged is fetched again before a reader sees it") {
    TwoVersions f;
    FakeRemote remote;
    remote.copy_from(f.publisher.session->remote(), "hfdelta");
    remote.flip(f.object("notes.txt"), 0, 1);
    const auto rebuilder = over(remote, f.open_cache());
    const std::string& text = f.head_tree["notes.txt"];
    const auto first = rebuilder->read_blocking(f.ref("notes.txt"), {0, text.size()});
    REQUIRE(first.ok());
    CHECK(base::as_text(*first) == text);
    CHECK(rebuilder->counters().blocks_bad.load() == 1);
    CHECK(rebuilder->counters().blocks_healed.load() == 1);
    check_read(*rebuilder, f.ref("notes.txt"), {0, text.size()}, text);
  }

  TEST_CASE("blocks at hand are read again without a request") {
    TwoVersions f;
    FakeRemote remote;
    remote.copy_from(f.publisher.session->remote(), "hfdelta");
    const auto rebuilder = over(remote, nullptr);
    check_read(*rebuilder, f.ref(model), {100, 5000}, f.head_tree[model]);
    const std::size_t count = remote.request_count();
    check_read(*rebuilder, f.ref(model), {7, 100'000}, f.head_tree[model]);
    CHECK(remote.request_count() == count);
  }

  TEST_CASE("a new rebuilder over a filled cache asks the remote for nothing") {
    TwoVersions f;
    FakeRemote remote;
    remote.copy_from(f.publisher.session->remote(), "hfdelta");
    store::ChunkStore* cache = f.open_cache();
    check_read(*over(remote, cache), f.ref(model), {0, f.head_tree[model].size()}, f.head_tree[model]);
    const std::size_t count = remote.request_count();
    check_read(*over(remote, cache), f.ref(model), {0, f.head_tree[model].size()}, f.head_tree[model]);
    CHECK(remote.request_count() == count);
  }

  TEST_CASE("readers of one block share its rebuild") {
    TwoVersions f;
    FakeRemote remote;
    remote.copy_from(f.publisher.session->remote(), "hfdelta");
    const std::string path = "other.safetensors";
    remote.hold(f.object(path));
    const auto rebuilder = over(remote, nullptr);
    std::vector<std::future<Result<base::Bytes>>> readers;
    for (std::uint64_t i = 0; i < 5; ++i) {
      readers.push_back(start(*rebuilder, f.ref(path), {i, 1000}));
    }
    remote.release();
    for (std::uint64_t i = 0; i < 5; ++i) {
      const auto bytes = readers[i].get();
      REQUIRE(bytes.ok());
      CHECK(base::as_text(*bytes) == f.head_tree[path].substr(i, 1000));
    }
    CHECK(rebuilder->counters().blocks_rebuilt.load() == 1);
  }

  TEST_CASE("a stuck object does not stop reads of another content") {
    TwoVersions f;
    FakeRemote remote;
    remote.copy_from(f.publisher.session->remote(), "hfdelta");
    const std::string stuck = "other.safetensors";
    remote.hold(f.object(stuck));
    RebuildOptions options;
    options.active_max = 4;
    options.active_per_content_max = 3;
    const auto rebuilder = Rebuilder::create(remote, no_upstream(), nullptr, options);
    std::vector<std::future<Result<base::Bytes>>> waiting;
    for (std::uint64_t i = 0; i < 8; ++i) {
      waiting.push_back(start(*rebuilder, f.ref(stuck), {i * 80'000, 10}));
    }
    auto free = start(*rebuilder, f.ref(model), {0, 1000});
    const bool answered = free.wait_for(patience) == std::future_status::ready;
    CHECK(answered);
    CHECK(waiting.front().wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
    remote.release();
    for (std::uint64_t i = 0; i < 8; ++i) {
      const auto bytes = waiting[i].get();  // those that queued are admitted in their turn
      REQUIRE(bytes.ok());
      CHECK(base::as_text(*bytes) == f.head_tree[stuck].substr(i * 80'000, 10));
    }
    const auto bytes = free.get();
    REQUIRE(bytes.ok());
    CHECK(base::as_text(*bytes) == f.head_tree[model].substr(0, 1000));
  }

  TEST_CASE("an error of the remote reaches the reader and is not kept") {
    TwoVersions f;
    FakeRemote remote;
    remote.copy_from(f.publisher.session->remote(), "hfdelta");
    const auto rebuilder = over(remote, f.open_cache());
    remote.fail(Error{ErrorCode::unavailable, "no answer"}, 1);
    const auto bytes = rebuilder->read_blocking(f.ref(model), {0, 10});
    REQUIRE_FALSE(bytes.ok());
    CHECK(bytes.error().code == ErrorCode::unavailable);
    CHECK(bytes.error().object == f.object(model));
    check_read(*rebuilder, f.ref(model), {0, 10}, f.head_tree[model]);
  }

  TEST_CASE("a read past the end is invalid_argument") {
    TwoVersions f;
    const auto rebuilder = over(f.publisher.session->remote(), nullptr);
    const std::uint64_t bytes = f.head_tree[model].size();
    for (const ByteRange range :
         {ByteRange{0, bytes + 1}, ByteRange{bytes, 1}, ByteRange{UINT64_MAX, 2}, ByteRange{1, UINT64_MAX}}) {
      const auto read = rebuilder->read_blocking(f.ref(model), range);
      REQUIRE_FALSE(read.ok());
      CHECK(read.error().code == ErrorCode::invalid_argument);
    }
  }

  TEST_CASE("a content that the version does not know is not_found") {
    TwoVersions f;
    const auto rebuilder = over(f.publisher.session->remote(), nullptr);
    const ContentRef unknown{f.head, base::content_hash(base::as_bytes("nobody has this"))};
    const auto read = rebuilder->read_blocking(unknown, {0, 1});
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code == ErrorCode::not_found);
    CHECK(read.error().object == unknown.sha256.hex());
    CHECK(rebuilder->open(unknown)->size() == 0);
  }
}

}  // namespace
}  // namespace hfd::rebuild
