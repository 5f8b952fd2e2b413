// SPDX-License-Identifier: Apache-2.0
#include "store/tables.hpp"

#include <atomic>
#include <random>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.hpp"
#include "temp_folder.hpp"

namespace hfd::store {
namespace {

using base::as_bytes;
using base::as_text;
using test::TempFolder;

TablesOptions options_in(const std::string& folder,
                         PowerLoss power_loss = PowerLoss::keeps_synced) {
  TablesOptions options;
  options.folder = folder;
  options.names = {"one", "two"};
  options.map_bytes_max = 64U << 20U;
  options.power_loss = power_loss;
  return options;
}

std::unique_ptr<Tables> open_good(const TablesOptions& options) {
  auto tables = Tables::open(options);
  if (!tables.ok()) {
    FAIL("cannot open: " << tables.error().message);
  }
  return std::move(*tables);
}

void put(Tables& tables, const std::string& key, const std::string& value) {
  auto writing = tables.begin_write();
  REQUIRE(writing.ok());
  REQUIRE(writing->put(0, as_bytes(key), as_bytes(value)).ok());
  REQUIRE(writing->commit().ok());
}

std::string get(const Tables& tables, const std::string& key) {
  const auto reading = tables.begin_read();
  REQUIRE(reading.ok());
  const auto value = reading->get(0, as_bytes(key));
  REQUIRE(value.ok());
  return *value ? std::string(as_text(**value)) : "-";
}

void flip(const std::string& file, std::uint64_t at, std::byte with) {
  const auto fd = base::open_file(file, O_RDWR);
  REQUIRE(fd.ok());
  base::Bytes one(1);
  REQUIRE(base::read_exactly(*fd, at, one, file).ok());
  one[0] ^= with;
  REQUIRE(base::write_exactly(*fd, at, one, file).ok());
}

TEST_SUITE("store/tables") {
  TEST_CASE("committed rows are there after opening again, uncommitted ones are not") {
    const TempFolder temp;
    {
      const auto tables = open_good(options_in(temp / "t"));
      put(*tables, "a", "1");
      auto writing = tables->begin_write();
      REQUIRE(writing.ok());
      REQUIRE(writing->put(0, as_bytes("b"), as_bytes("2")).ok());
    }
    const auto tables = open_good(options_in(temp / "t"));
    CHECK(get(*tables, "a") == "1");
    CHECK(get(*tables, "b") == "-");
    CHECK_FALSE(tables->went_back());
  }

  TEST_CASE("a scan goes in key order from where it is told") {
    const TempFolder temp;
    const auto tables = open_good(options_in(temp / "t"));
    for (const char* key : {"c", "a", "d", "b"}) {
      put(*tables, key, "x");
    }
    const auto reading = tables->begin_read();
    REQUIRE(reading.ok());
    std::string seen;
    REQUIRE(reading
                ->scan(0, as_bytes("b"),
                       [&](base::ByteView key, base::ByteView) {
                         seen += as_text(key);
                         return seen.size() < 2;
                       })
                .ok());
    CHECK(seen == "bc");
  }

  TEST_CASE("removing and overwriting are seen, other tables are not touched") {
    const TempFolder temp;
    const auto tables = open_good(options_in(temp / "t"));
    put(*tables, "a", "1");
    put(*tables, "a", "2");
    CHECK(get(*tables, "a") == "2");
    auto writing = tables->begin_write();
    REQUIRE(writing.ok());
    REQUIRE(writing->remove(0, as_bytes("a")).ok());
    REQUIRE(writing->remove(0, as_bytes("never there")).ok());
    CHECK_FALSE(writing->put(0, as_bytes(std::string(501, 'k')), {}).ok());
    REQUIRE(writing->commit().ok());
    CHECK(get(*tables, "a") == "-");
  }

  TEST_CASE("a folder opened twice in one process is the same tables") {
    const TempFolder temp;
    const auto first = open_good(options_in(temp / "t"));
    const auto second = open_good(options_in(temp / "t"));
    put(*first, "a", "1");
    CHECK(get(*second, "a") == "1");
  }

  TEST_CASE("readers keep their moment while others write, on many threads") {
    const TempFolder temp;
    const auto tables = open_good(options_in(temp / "t"));
    put(*tables, "a", "0");
    put(*tables, "b", "0");
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&] {
        while (!stop) {
          const auto reading = tables->begin_read();
          const auto a = reading->get(0, as_bytes("a"));
          const std::string first(as_text(**a));
          const auto b = reading->get(0, as_bytes("b"));
          wrong += first == as_text(**b) ? 0 : 1;
        }
      });
    }
    for (int i = 0; i < 500; ++i) {
      auto writing = tables->begin_write();
      REQUIRE(writing.ok());
      const std::string text = std::to_string(i);
      REQUIRE(writing->put(0, as_bytes("a"), as_bytes(text)).ok());
      REQUIRE(writing->put(0, as_bytes("b"), as_bytes(text)).ok());
      REQUIRE(writing->commit().ok());
    }
    stop = true;
    for (std::thread& reader : readers) {
      reader.join();
    }
    CHECK(wrong == 0);
  }

  TEST_CASE("power loss takes tables that keep synced states back to the last sync") {
    const TempFolder temp;
    auto options = options_in(temp / "t");
    {
      const auto tables = open_good(options);
      put(*tables, "a", "synced");
      REQUIRE(tables->sync().ok());
      for (int i = 0; i < 200; ++i) {  // enough to use every free page many times over
        put(*tables, "a", "newer " + std::to_string(i));
        put(*tables, "b" + std::to_string(i), std::string(300, 'x'));
      }
      // What the disk may hold when the power goes: copied while open, so that nothing is closed
      // well.
      std::filesystem::copy(temp / "t", temp / "lost");
    }
    options.folder = temp / "lost";
    options.assume_power_loss = true;
    const auto tables = open_good(options);
    CHECK(tables->went_back());
    CHECK(get(*tables, "a") == "synced");
    CHECK(get(*tables, "b0") == "-");
    put(*tables, "a", "goes on");
    CHECK(get(*tables, "a") == "goes on");
  }

  TEST_CASE("pages written after the last sync may be lost in any combination") {
    const TempFolder temp;
    auto options = options_in(temp / "t");
    base::Bytes at_sync;
    base::Bytes at_end;
    {
      const auto tables = open_good(options);
      for (int i = 0; i < 100; ++i) {
        put(*tables, "k" + std::to_string(i), std::string(200, 's'));
      }
      REQUIRE(tables->sync().ok());
      at_sync = *base::read_file(temp / "t/data.mdb", 1U << 30U);
      for (int i = 0; i < 100; ++i) {
        put(*tables, "k" + std::to_string(i), std::string(200, 'n'));
      }
      at_end = *base::read_file(temp / "t/data.mdb", 1U << 30U);
      std::filesystem::copy(temp / "t", temp / "lost");
    }
    std::mt19937 random(7);
    for (int round = 0; round < 50; ++round) {
      base::Bytes torn = at_end;
      constexpr std::size_t page = 4096;
      for (std::size_t at = 0; at < torn.size(); at += page) {
        if (random() % 2 == 0) {  // this page did not reach the disk
          for (std::size_t i = at; i < at + page; ++i) {
            torn[i] = i < at_sync.size() ? at_sync[i] : std::byte{0};
          }
        }
      }
      const auto fd = base::open_file(temp / "lost/data.mdb", O_WRONLY | O_TRUNC);
      REQUIRE(base::write_exactly(*fd, 0, torn, "data").ok());
      auto lost = options;
      lost.folder = temp / "lost";
      lost.assume_power_loss = true;
      std::filesystem::copy(temp / "lost", temp / "round");
      lost.folder = temp / "round";
      {
        const auto tables = open_good(lost);
        for (int i = 0; i < 100; ++i) {
          REQUIRE(get(*tables, "k" + std::to_string(i)) == std::string(200, 's'));
        }
      }
      std::filesystem::remove_all(temp / "round");
    }
  }

  TEST_CASE("power loss makes tables that keep nothing corrupt") {
    const TempFolder temp;
    auto options = options_in(temp / "t", PowerLoss::forgets_all);
    { put(*open_good(options), "a", "1"); }
    CHECK(get(*open_good(options), "a") == "1");
    options.assume_power_loss = true;
    const auto tables = Tables::open(options);
    REQUIRE_FALSE(tables.ok());
    CHECK(tables.error().code == ErrorCode::corrupt);
  }

  TEST_CASE("a damaged or cut file gives an error or right rows and never ends the process") {
    const TempFolder temp;
    const auto options = options_in(temp / "t", PowerLoss::forgets_all);
    {
      const auto tables = open_good(options);
      for (int i = 0; i < 300; ++i) {
        put(*tables, "key " + std::to_string(i), std::string(100, 'v'));
      }
      for (int i = 0; i < 300; i += 3) {
        auto writing = tables->begin_write();
        REQUIRE(writing->remove(0, as_bytes("key " + std::to_string(i))).ok());
        REQUIRE(writing->commit().ok());
      }
    }
    const std::uint64_t size = std::filesystem::file_size(temp / "t/data.mdb");
    const unsigned seed = std::random_device{}();
    MESSAGE("seed " << seed);
    std::mt19937 random(seed);
    int refused = 0;
    for (int round = 0; round < 150; ++round) {
      std::filesystem::copy(temp / "t", temp / "r");
      if (round % 10 == 0) {
        std::filesystem::resize_file(temp / "r/data.mdb", random() % size);
      } else {
        flip(temp / "r/data.mdb", random() % size, static_cast<std::byte>(1U << (random() % 8)));
      }
      auto damaged = options;
      damaged.folder = temp / "r";
      const auto tables = Tables::open(damaged);
      if (tables.ok()) {
        const auto reading = (*tables)->begin_read();
        REQUIRE(reading.ok());
        [[maybe_unused]] const auto scanned = reading->scan(
            0, {},
            [](base::ByteView key, base::ByteView value) { return key.size() + value.size() > 0; });
        for (int i = 0; i < 20; ++i) {
          put(**tables, "new " + std::to_string(i), std::string(500, 'n'));
        }
      }
      refused += tables.ok() ? 0 : 1;
      std::filesystem::remove_all(temp / "r");
    }
    CHECK(refused > 10);
  }

  TEST_CASE("a killed process loses no committed row and blocks nobody") {
    const TempFolder temp;
    const auto options = options_in(temp / "t");
    const pid_t child = ::fork();
    if (child == 0) {
      auto tables = Tables::open(options);
      bool good = tables.ok();
      for (int i = 0; good && i < 50; ++i) {
        auto writing = (*tables)->begin_write();
        good = writing.ok() &&
               writing->put(0, as_bytes("k" + std::to_string(i)), as_bytes("v")).ok() &&
               writing->commit().ok();
      }
      auto unfinished = (*tables)->begin_write();
      good = good && unfinished->put(0, as_bytes("unfinished"), as_bytes("v")).ok();
      ::kill(::getpid(), good ? SIGKILL : SIGTERM);
    }
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WTERMSIG(status) == SIGKILL);
    const auto tables = open_good(options);
    CHECK(get(*tables, "k49") == "v");
    CHECK(get(*tables, "unfinished") == "-");
    put(*tables, "after", "1");
  }
}

}  // namespace
}  // namespace hfd::store
