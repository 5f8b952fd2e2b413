// SPDX-License-Identifier: Apache-2.0
#include "cli/folders.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <doctest/doctest.h>

#include "temp_folder.hpp"

namespace hfd::cli {
namespace {

/// Sets an environment variable for one test case; nullptr unsets it.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) {
      old_ = old;
    }
    set(value);
  }
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const char* value) {
    if (value == nullptr) {
      ::unsetenv(name_);
    } else {
      ::setenv(name_, value, 1);
    }
  }
  const char* name_;
  std::optional<std::string> old_;
};

TEST_SUITE("cli/folders") {
  TEST_CASE("sizes are bytes or powers of 1024") {
    const std::pair<const char*, std::uint64_t> sizes[] = {
        {"0", 0},
        {"123", 123},
        {"64K", 64ULL << 10U},
        {"256M", 256ULL << 20U},
        {"10G", 10ULL << 30U},
        {"1.5T", 3ULL << 39U},
        {"0.5K", 512},
        {"10g", 10ULL << 30U},
        {"2GB", 2ULL << 30U},
        {"2GiB", 2ULL << 30U},
    };
    for (const auto& [text, bytes] : sizes) {
      const std::string shown(text);  // clang 14 captures no structured binding
      INFO("size " << shown);
      const auto parsed = parse_size(text);
      REQUIRE(parsed.ok());
      CHECK(*parsed == bytes);
    }
  }

  TEST_CASE("what is no size is invalid_argument and named") {
    for (const char* text : {"", "G", "-1", "-1G", "10X", "10GG", "10 G", "10G ", "0x10", "nan", "inf",
                             "1e400", "2000000T", "ten", "10GIB", "B", "10B", " 10", "+5"}) {
      INFO("size '" << text << "'");
      const auto parsed = parse_size(text);
      REQUIRE_FALSE(parsed.ok());
      CHECK(parsed.error().code == ErrorCode::invalid_argument);
      CHECK(parsed.error().object == text);
    }
  }

  TEST_CASE("seconds become milliseconds") {
    CHECK(*parse_seconds_ms("5") == 5000);
    CHECK(*parse_seconds_ms("0.5") == 500);
    CHECK(*parse_seconds_ms(".25") == 250);
    CHECK(*parse_seconds_ms("0") == 0);
    CHECK(*parse_seconds_ms("3600") == 3'600'000);
  }

  TEST_CASE("what is no number of seconds is invalid_argument") {
    for (const char* text : {"", "-1", "5s", "5 ", "1e9", "abc", "inf", "nan", "0x5", "99999999"}) {
      INFO("seconds '" << text << "'");
      const auto parsed = parse_seconds_ms(text);
      REQUIRE_FALSE(parsed.ok());
      CHECK(parsed.error().code == ErrorCode::invalid_argument);
    }
  }

  TEST_CASE("a cache folder that is named holds cache and staging") {
    const LocalFolders folders = local_folders("/scratch/c", "/mnt/m");
    CHECK(folders.cache == "/scratch/c/cache");
    CHECK(folders.staging == "/scratch/c/staging");
  }

  TEST_CASE("without one the folders are where XDG says") {
    const Environment cache("XDG_CACHE_HOME", "/x/cache");
    const Environment state("XDG_STATE_HOME", "/x/state");
    const LocalFolders folders = local_folders("", "/mnt/model");
    CHECK(folders.cache == "/x/cache/hfdeltafs");
    CHECK(folders.staging.starts_with("/x/state/hfdeltafs/mnt-model-"));
  }

  TEST_CASE("without XDG variables, or with relative ones, they are below HOME") {
    const Environment cache("XDG_CACHE_HOME", nullptr);
    const Environment state("XDG_STATE_HOME", "relative");
    const Environment home("HOME", "/home/somebody");
    const LocalFolders folders = local_folders("", "/mnt/model");
    CHECK(folders.cache == "/home/somebody/.cache/hfdeltafs");
    CHECK(folders.staging.starts_with("/home/somebody/.local/state/hfdeltafs/mnt-model-"));
  }

  TEST_CASE("mount points share the cache and have stagings of their own, the same each time") {
    const LocalFolders slash = local_folders("", "/a/b");
    const LocalFolders dash = local_folders("", "/a-b");
    CHECK(slash.cache == dash.cache);
    CHECK(slash.staging != dash.staging);
    CHECK(slash.staging == local_folders("", "/a/b").staging);
  }

  TEST_CASE("the name of a staging is one bounded segment") {
    const Environment state("XDG_STATE_HOME", "/s");
    for (const std::string& mount : {std::string("/"), std::string(4000, 'm'), "/" + std::string(300, '/')}) {
      const std::string staging = local_folders("", mount).staging;
      const std::string name = staging.substr(std::string("/s/hfdeltafs/").size());
      CHECK(name.find('/') == std::string::npos);
      CHECK_FALSE(name.empty());
      CHECK(name.size() <= 255);
    }
    CHECK(local_folders("", std::string(4000, 'm') + "1").staging !=
          local_folders("", std::string(4000, 'm') + "2").staging);
  }

  TEST_CASE("a folder's canonical path follows links; a missing one is not_found") {
    const test::TempFolder temp;
    std::filesystem::create_directory(temp / "real");
    std::filesystem::create_symlink("real", temp / "link");
    const auto real = canonical_folder(temp / "real");
    const auto link = canonical_folder(temp / "link/../link/");
    REQUIRE(real.ok());
    REQUIRE(link.ok());
    CHECK(*link == *real);
    const auto missing = canonical_folder(temp / "missing");
    REQUIRE_FALSE(missing.ok());
    CHECK(missing.error().code == ErrorCode::not_found);
  }
}

}  // namespace
}  // namespace hfd::cli
