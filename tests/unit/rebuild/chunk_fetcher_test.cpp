// SPDX-License-Identifier: Apache-2.0
#include "rebuild/chunk_fetcher.hpp"

#include <memory>

#include <doctest/doctest.h>

#include "publish/publisher_fixture.hpp"
#include "rebuild/fake_remote.hpp"
#include "temp_folder.hpp"

namespace hfd::rebuild {
namespace {

using store::chunk_bytes;
using test::FakeRemote;

constexpr std::chrono::milliseconds deadline{30'000};
constexpr const char* object_name = "deltas/o.hfd";

/// A read that was started.
struct Reading {
  base::Bytes bytes;
  int done_count = 0;
  std::optional<Error> error;

  bool ok() const { return done_count == 1 && !error; }
};

struct Fetching {
  test::TempFolder folder;
  FakeRemote remote;
  std::string object;
  std::unique_ptr<store::ChunkStore> cache;
  std::unique_ptr<ChunkFetcher> fetcher;
  FetchSource source;

  explicit Fetching(std::uint64_t object_bytes) : object(test::noise(object_bytes, 1)) {
    remote.set_object(object_name, object);
    auto opened = store::ChunkStore::open({.folder = folder / "cache"});
    REQUIRE(opened.ok());
    cache = std::move(*opened);
    fetcher = std::make_unique<ChunkFetcher>(cache.get(), deadline);
    source = {&remote, object_name, object_bytes, base::object_id(base::as_bytes(object)).bytes};
  }
  std::shared_ptr<Reading> read(ByteRange range) {
    auto reading = std::make_shared<Reading>();
    reading->bytes.resize(range.size);
    fetcher->read_into(source, range, reading->bytes, [reading](Result<void> result) {
      ++reading->done_count;
      if (!result.ok()) {
        reading->error = std::move(result).error();
      }
    });
    return reading;
  }
  void check_bytes(const Reading& reading, ByteRange range) const {
    REQUIRE(reading.ok());
    CHECK(base::as_text(reading.bytes) == std::string_view(object).substr(range.offset, range.size));
  }
};

TEST_SUITE("rebuild/chunk_fetcher") {
  TEST_CASE("neighbouring chunks travel as one request of whole chunks") {
    Fetching f(5 * chunk_bytes + 100);
    const ByteRange range{10, 3 * chunk_bytes};
    f.check_bytes(*f.read(range), range);
    REQUIRE(f.remote.request_count() == 1);
    CHECK(f.remote.requests()[0].range == ByteRange{0, 4 * chunk_bytes});
  }

  TEST_CASE("the last chunk is as long as the object") {
    Fetching f(2 * chunk_bytes + 100);
    const ByteRange range{2 * chunk_bytes + 50, 50};
    f.check_bytes(*f.read(range), range);
    CHECK(f.remote.requests()[0].range == ByteRange{2 * chunk_bytes, 100});
  }

  TEST_CASE("a second read of what is cached makes no request") {
    Fetching f(3 * chunk_bytes);
    f.check_bytes(*f.read({0, 2 * chunk_bytes}), {0, 2 * chunk_bytes});
    const ByteRange inside{chunk_bytes - 7, 20};
    f.check_bytes(*f.read(inside), inside);
    CHECK(f.remote.request_count() == 1);
  }

  TEST_CASE("only the missing chunks around a cached one are asked for") {
    Fetching f(4 * chunk_bytes);
    f.read({chunk_bytes, 1});
    f.check_bytes(*f.read({0, 4 * chunk_bytes}), {0, 4 * chunk_bytes});
    const auto requests = f.remote.requests();
    REQUIRE(requests.size() == 3);
    CHECK(requests[1].range == ByteRange{0, chunk_bytes});
    CHECK(requests[2].range == ByteRange{2 * chunk_bytes, 2 * chunk_bytes});
  }

  TEST_CASE("a long run is cut into requests of 4 MiB") {
    Fetching f(20 * chunk_bytes);
    f.check_bytes(*f.read({0, 20 * chunk_bytes}), {0, 20 * chunk_bytes});
    const auto requests = f.remote.requests();
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].range == ByteRange{0, 4U << 20U});
    CHECK(requests[1].range == ByteRange{4U << 20U, chunk_bytes * 4});
  }

  TEST_CASE("a chunk under way is asked for once, however many wait for it") {
    Fetching f(3 * chunk_bytes);
    f.remote.hold(object_name);
    const auto first = f.read({0, 2 * chunk_bytes});
    const auto same = f.read({5, 2 * chunk_bytes - 10});
    const auto further = f.read({chunk_bytes + 3, 2 * chunk_bytes - 3});
    const auto requests = f.remote.requests();
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].range == ByteRange{0, 2 * chunk_bytes});
    CHECK(requests[1].range == ByteRange{2 * chunk_bytes, chunk_bytes});
    CHECK(first->done_count + same->done_count + further->done_count == 0);
    f.remote.release();
    f.check_bytes(*first, {0, 2 * chunk_bytes});
    f.check_bytes(*same, {5, 2 * chunk_bytes - 10});
    f.check_bytes(*further, {chunk_bytes + 3, 2 * chunk_bytes - 3});
  }

  TEST_CASE("an error reaches all who wait and is not kept") {
    Fetching f(2 * chunk_bytes);
    f.remote.hold(object_name);
    const auto first = f.read({0, 100});
    const auto second = f.read({50, 100});
    f.remote.fail(Error{ErrorCode::unavailable, "no answer", object_name}, 1);
    f.remote.release();
    for (const auto& reading : {first, second}) {
      REQUIRE(reading->done_count == 1);
      REQUIRE(reading->error);
      CHECK(reading->error->code == ErrorCode::unavailable);
    }
    f.check_bytes(*f.read({0, 100}), {0, 100});
    CHECK(f.remote.request_count() == 2);
  }

  TEST_CASE("one failed request of several fails the read, and the others are cached") {
    Fetching f(3 * chunk_bytes);
    f.read({chunk_bytes, 1});
    f.remote.fail(Error{ErrorCode::unavailable, "no answer"}, 1);
    const auto reading = f.read({0, 3 * chunk_bytes});
    REQUIRE(reading->error);
    CHECK(reading->done_count == 1);
    const std::size_t count = f.remote.request_count();
    f.check_bytes(*f.read({2 * chunk_bytes, 9}), {2 * chunk_bytes, 9});
    CHECK(f.remote.request_count() == count);
  }

  TEST_CASE("dropped chunks are fetched anew, their neighbours are not") {
    Fetching f(3 * chunk_bytes);
    f.read({0, 3 * chunk_bytes});
    f.object = test::noise(3 * chunk_bytes, 2);
    f.remote.set_object(object_name, f.object);
    const ByteRange range{chunk_bytes + 5, 10};
    f.fetcher->drop(f.source, range);
    f.check_bytes(*f.read(range), range);
    CHECK(f.remote.request_count() == 2);
    CHECK(f.remote.requests()[1].range == ByteRange{chunk_bytes, chunk_bytes});
    f.read({0, chunk_bytes});
    f.read({2 * chunk_bytes, chunk_bytes});
    CHECK(f.remote.request_count() == 2);
  }

  TEST_CASE("a range past the end of the object is corrupt without a request") {
    Fetching f(1000);
    for (const ByteRange range : {ByteRange{0, 1001}, ByteRange{1000, 1}, ByteRange{UINT64_MAX, 8}}) {
      const auto reading = f.read(range);
      REQUIRE(reading->error);
      CHECK(reading->error->code == ErrorCode::corrupt);
      CHECK(reading->error->object == object_name);
    }
    CHECK(f.read({1000, 0})->ok());
    CHECK(f.remote.request_count() == 0);
  }

  TEST_CASE("without a cache every range is fetched as it is") {
    Fetching f(2 * chunk_bytes);
    f.fetcher = std::make_unique<ChunkFetcher>(nullptr, deadline);
    const ByteRange range{17, chunk_bytes};
    f.check_bytes(*f.read(range), range);
    f.check_bytes(*f.read(range), range);
    f.fetcher->drop(f.source, range);
    REQUIRE(f.remote.request_count() == 2);
    CHECK(f.remote.requests()[0].range == range);
    f.remote.fail(Error{ErrorCode::unavailable, "no answer"}, 1);
    CHECK(f.read(range)->error->code == ErrorCode::unavailable);
  }
}

}  // namespace
}  // namespace hfd::rebuild
