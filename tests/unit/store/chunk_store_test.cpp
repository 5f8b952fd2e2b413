// SPDX-License-Identifier: Apache-2.0
#include "store/chunk_store.hpp"

#include <atomic>
#include <random>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.hpp"
#include "temp_folder.hpp"

namespace hfd::store {
namespace {

using test::TempFolder;

/// As `du -s --block-size=1`.
std::uint64_t du(const std::string& folder) {
  struct stat status {};
  REQUIRE(::lstat(folder.c_str(), &status) == 0);
  auto bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    REQUIRE(::lstat(entry.path().c_str(), &status) == 0);
    bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

ChunkKey key_of(unsigned object, std::uint64_t index) {
  return {base::sha256(base::as_bytes("object " + std::to_string(object))), index};
}

/// Bytes that only this chunk has, never zero.
base::Bytes bytes_of(const ChunkKey& key, std::size_t size = chunk_bytes) {
  base::Bytes bytes(size);
  std::uint64_t state = std::to_integer<std::uint64_t>(key.owner[0]) * 1000003 + key.index + 1;
  for (std::size_t i = 0; i < size; i += 8) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t word = state | 0x0101010101010101U;
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

std::unique_ptr<ChunkStore> open_good(const CacheOptions& options) {
  auto store = ChunkStore::open(options);
  if (!store.ok()) {
    FAIL("cannot open: " << store.error().message << " " << store.error().object);
  }
  return std::move(*store);
}

CacheOptions options_in(const std::string& folder, std::uint64_t bytes_max = 1U << 30U) {
  CacheOptions options;
  options.folder = folder;
  options.bytes_max = bytes_max;
  return options;
}

bool has(ChunkStore& store, const ChunkKey& key, std::size_t size = chunk_bytes) {
  base::Bytes out(size);
  const auto read = store.read(key, {0, size}, out);
  REQUIRE(read.ok());
  if (*read) {
    REQUIRE(out == bytes_of(key, size));
  }
  return *read;
}

std::string file_of(const std::string& folder, const ChunkKey& key) {
  const std::string name = ContentHash{key.owner}.hex();
  return folder + "/data/" + name.substr(0, 2) + "/" + name;
}

TEST_SUITE("store/chunk_store") {
  TEST_CASE("a stored chunk comes back, whole and in parts, also from a new process") {
    const TempFolder temp;
    const ChunkKey key = key_of(1, 3);
    for (int i = 0; i < 2; ++i) {
      const auto store = open_good(options_in(temp / "c"));
      if (i == 0) {
        CHECK_FALSE(has(*store, key));
        REQUIRE(store->write(key, bytes_of(key)).ok());
      }
      CHECK(store->contains(key));
      CHECK_FALSE(store->contains(key_of(1, 2)));
      CHECK(has(*store, key));
      base::Bytes part(100);
      CHECK(*store->read(key, {5000, 100}, part));
      const base::Bytes whole = bytes_of(key);
      CHECK(std::equal(part.begin(), part.end(), whole.begin() + 5000));
    }
  }

  TEST_CASE("the last chunk of an object may be short and an empty object has none") {
    const TempFolder temp;
    const auto store = open_good(options_in(temp / "c"));
    const ChunkKey key = key_of(1, 0);
    REQUIRE(store->write(key, bytes_of(key, 777)).ok());
    CHECK(has(*store, key, 777));
    base::Bytes longer(778);
    CHECK_FALSE(*store->read(key, {0, 778}, longer));
    REQUIRE(store->write(key_of(2, 0), {}).ok());
    CHECK_FALSE(store->contains(key_of(2, 0)));
    CHECK_FALSE(store->write(key, base::Bytes(chunk_bytes + 1)).ok());
  }

  TEST_CASE("the folder never takes more than the cap, measured after every write") {
    for (const bool may_punch : {true, false}) {
      const TempFolder temp;
      constexpr std::uint64_t cap = 8U << 20U;
      auto options = options_in(temp / "c", cap);
      options.may_punch = may_punch;
      const auto store = open_good(options);
      std::mt19937 random(3);
      int kept = 0;
      for (int i = 0; i < 200; ++i) {
        const ChunkKey key = key_of(static_cast<unsigned>(random() % 12), random() % 40);
        const std::size_t size = random() % 4 == 0 ? 1 + random() % 9000 : chunk_bytes;
        REQUIRE(store->write(key, bytes_of(key, size)).ok());
        const std::uint64_t on_disk = du(temp / "c");
        REQUIRE(on_disk <= cap);
        REQUIRE(on_disk <= store->bytes_used());
        kept += store->contains(key) ? 1 : 0;
      }
      CHECK(kept == 200);
      CHECK(store->counters().evicted > 0);
      CHECK(store->counters().refused == 0);
      CHECK(store->bytes_used() > cap / 3);
    }
  }

  TEST_CASE("a cap that holds nothing refuses and counts") {
    const TempFolder temp;
    const auto store = open_good(options_in(temp / "c", 300U << 10U));
    const ChunkKey key = key_of(1, 0);
    REQUIRE(store->write(key, bytes_of(key)).ok());
    CHECK_FALSE(store->contains(key));
    CHECK(store->counters().refused == 1);
  }

  TEST_CASE("a cap that became lower is obeyed at open") {
    const TempFolder temp;
    {
      const auto store = open_good(options_in(temp / "c"));
      for (unsigned i = 0; i < 64; ++i) {
        REQUIRE(store->write(key_of(i, 0), bytes_of(key_of(i, 0))).ok());
      }
    }
    const auto store = open_good(options_in(temp / "c", 4U << 20U));
    CHECK(du(temp / "c") <= (4U << 20U));
  }

  TEST_CASE("the object that was used longest ago goes first") {
    const TempFolder temp;
    const auto store = open_good(options_in(temp / "c", 8U << 20U));
    for (unsigned object = 0; object < 4; ++object) {
      for (std::uint64_t i = 0; i < 4; ++i) {
        REQUIRE(store->write(key_of(object, i), bytes_of(key_of(object, i))).ok());
      }
    }
    CHECK(has(*store, key_of(0, 0)));  // now 1 is the oldest
    for (std::uint64_t i = 0; store->counters().evicted == 0; ++i) {
      REQUIRE(store->write(key_of(9, i), bytes_of(key_of(9, i))).ok());
    }
    CHECK(store->contains(key_of(0, 0)));
    CHECK_FALSE(store->contains(key_of(1, 0)));
    CHECK(store->contains(key_of(2, 0)));
  }

  TEST_CASE("a data file goes when its last chunk goes") {
    const TempFolder temp;
    const auto store = open_good(options_in(temp / "c"));
    REQUIRE(store->write(key_of(1, 0), bytes_of(key_of(1, 0))).ok());
    REQUIRE(store->write(key_of(1, 1), bytes_of(key_of(1, 1))).ok());
    store->drop(key_of(1, 0));
    CHECK_FALSE(store->contains(key_of(1, 0)));
    CHECK(has(*store, key_of(1, 1)));
    CHECK(std::filesystem::exists(file_of(temp / "c", key_of(1, 0))));
    store->drop_object(key_of(1, 0).owner);
    CHECK_FALSE(store->contains(key_of(1, 1)));
    CHECK(std::filesystem::is_empty(temp / "c/data"));
    REQUIRE(store->write(key_of(1, 1), bytes_of(key_of(1, 1))).ok());
    CHECK(has(*store, key_of(1, 1)));
  }

  TEST_CASE("a byte that turned bad on disk is noticed, counted and dropped") {
    const TempFolder temp;
    const ChunkKey key = key_of(1, 2);
    const auto store = open_good(options_in(temp / "c"));
    REQUIRE(store->write(key, bytes_of(key)).ok());
    const auto fd = base::open_file(file_of(temp / "c", key), O_RDWR);
    REQUIRE(fd.ok());
    REQUIRE(base::write_exactly(*fd, 2 * chunk_bytes + 12345,
                                base::as_bytes(std::string_view("\0", 1)), "f")
                .ok());
    base::Bytes part(10);
    CHECK_FALSE(
        *store->read(key, {0, 10}, part));  // the whole chunk is looked at, not only the part
    CHECK(store->counters().bad == 1);
    CHECK_FALSE(store->contains(key));
    REQUIRE(store->write(key, bytes_of(key)).ok());
    CHECK(has(*store, key));
  }

  TEST_CASE("a data file that was cut or removed is a miss") {
    const TempFolder temp;
    const ChunkKey key = key_of(1, 2);
    const ChunkKey other = key_of(2, 0);
    {
      const auto store = open_good(options_in(temp / "c"));
      REQUIRE(store->write(key, bytes_of(key)).ok());
      REQUIRE(store->write(other, bytes_of(other)).ok());
      std::filesystem::resize_file(file_of(temp / "c", key), 2 * chunk_bytes + 10);
      CHECK_FALSE(has(*store, key));
    }
    std::filesystem::remove(file_of(temp / "c", other));
    const auto store = open_good(options_in(temp / "c"));
    CHECK_FALSE(has(*store, other));
  }

  TEST_CASE("a damaged index is thrown away with its data") {
    const TempFolder temp;
    const ChunkKey key = key_of(1, 0);
    {
      const auto store = open_good(options_in(temp / "c"));
      REQUIRE(store->write(key, bytes_of(key)).ok());
    }
    const auto fd = base::open_file(temp / "c/index/data.mdb", O_RDWR);
    REQUIRE(base::write_exactly(*fd, 0, base::as_bytes(std::string(8192, 'x')), "f").ok());
    const auto store = open_good(options_in(temp / "c"));
    CHECK_FALSE(has(*store, key));
    REQUIRE(store->write(key, bytes_of(key)).ok());
    CHECK(has(*store, key));
  }

  TEST_CASE("files that no row names are removed at open") {
    const TempFolder temp;
    { open_good(options_in(temp / "c")); }
    std::filesystem::create_directories(temp / "c/data/aa");
    const auto stray = base::open_file(
        file_of(temp / "c", key_of(1, 0)).replace((temp / "c/data/").size(), 2, "aa"),
        O_RDWR | O_CREAT);
    REQUIRE(stray.ok());
    const auto store = open_good(options_in(temp / "c"));
    CHECK(std::filesystem::is_empty(temp / "c/data"));
  }

  TEST_CASE("two stores on one folder see each other's chunks and keep one cap") {
    const TempFolder temp;
    constexpr std::uint64_t cap = 8U << 20U;
    const auto first = open_good(options_in(temp / "c", cap));
    const auto second = open_good(options_in(temp / "c", cap));
    for (std::uint64_t i = 0; i < 60; ++i) {
      const ChunkKey key = key_of(static_cast<unsigned>(i % 5), i);
      ChunkStore& writer = i % 2 == 0 ? *first : *second;
      ChunkStore& reader = i % 2 == 0 ? *second : *first;
      REQUIRE(writer.write(key, bytes_of(key)).ok());
      CHECK(has(reader, key));
      REQUIRE(du(temp / "c") <= cap);
    }
  }

  TEST_CASE("threads that read, write, drop and evict never see wrong bytes") {
    const TempFolder temp;
    constexpr std::uint64_t cap = 6U << 20U;
    const auto first = open_good(options_in(temp / "c", cap));
    const auto second = open_good(options_in(temp / "c", cap));
    std::atomic<int> wrong{0};
    std::atomic<int> hits{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 6; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        ChunkStore& store = t % 2 == 0 ? *first : *second;
        for (int i = 0; i < 150; ++i) {
          const ChunkKey key = key_of(static_cast<unsigned>(random() % 3), random() % 16);
          const base::Bytes expected = bytes_of(key);
          base::Bytes out(4096);
          const std::uint64_t at = (random() % 64) * 4096;
          const auto read = store.read(key, {at, out.size()}, out);
          if (read.ok() && *read) {
            ++hits;
            wrong += std::equal(out.begin(), out.end(),
                                expected.begin() + static_cast<std::ptrdiff_t>(at))
                         ? 0
                         : 1;
          } else if (random() % 20 == 0) {
            store.drop_object(key.owner);
          } else {
            wrong += store.write(key, expected).ok() ? 0 : 1;
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    CHECK(wrong == 0);
    CHECK(hits > 0);
    CHECK(first->counters().bad + second->counters().bad == 0);
    CHECK(du(temp / "c") <= cap);
  }

  TEST_CASE("processes killed while writing leave a folder within its cap and no wrong bytes") {
    const TempFolder temp;
    constexpr std::uint64_t cap = 6U << 20U;
    for (int round = 0; round < 10; ++round) {
      const pid_t child = ::fork();
      if (child == 0) {
        auto store = ChunkStore::open(options_in(temp / "c", cap));
        std::mt19937 random(static_cast<unsigned>(round));
        while (store.ok()) {
          const ChunkKey key = key_of(static_cast<unsigned>(random() % 4), random() % 16);
          if (!(*store)->write(key, bytes_of(key)).ok()) {
            break;
          }
        }
        ::_exit(1);
      }
      REQUIRE(child > 0);
      ::usleep(static_cast<useconds_t>(15'000 + round * 1'700));
      ::kill(child, SIGKILL);
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      REQUIRE(WIFSIGNALED(status));
      const auto store = open_good(options_in(temp / "c", cap));
      REQUIRE(du(temp / "c") <= cap);
      REQUIRE(du(temp / "c") <= store->bytes_used());
      for (unsigned object = 0; object < 4; ++object) {
        for (std::uint64_t i = 0; i < 16; ++i) {
          has(*store, key_of(object, i));
        }
      }
      CHECK(store->counters().bad == 0);
    }
  }

  TEST_CASE("a full disk means uncached, and space that comes back is used") {
    const TempFolder temp;
    const std::string mount = temp / "m";
    REQUIRE(::mkdir(mount.c_str(), 0700) == 0);
    if (::mount("none", mount.c_str(), "tmpfs", 0, "size=6m") != 0) {
      MESSAGE("SKIPPED: cannot mount a tmpfs here");
      return;
    }
    {
      const auto store = open_good(options_in(mount + "/c"));
      int refused = 0;
      for (unsigned i = 0; i < 60; ++i) {
        const ChunkKey key = key_of(i % 3, i);
        REQUIRE(store->write(key, bytes_of(key)).ok());
        if (store->contains(key)) {
          CHECK(has(*store, key));
        } else {
          ++refused;
        }
      }
      CHECK(refused > 0);
      CHECK(store->counters().refused == static_cast<std::uint64_t>(refused));
      for (unsigned i = 0; i < 60; ++i) {
        has(*store, key_of(i % 3, i));
      }
      store->drop_object(key_of(0, 0).owner);
      const ChunkKey key = key_of(7, 0);
      REQUIRE(store->write(key, bytes_of(key)).ok());
      CHECK(has(*store, key));
    }
    CHECK(::umount(mount.c_str()) == 0);
  }
}

}  // namespace
}  // namespace hfd::store
