// SPDX-License-Identifier: Apache-2.0
// Folders on disk, published and pulled by the functions behind the commands. Used by unit tests
// only.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "api/publish_folder.hpp"
#include "api/pull.hpp"
#include "publish/publisher_fixture.hpp"

namespace hfd::test {

inline void write_tree(const std::string& folder, const Tree& tree) {
  std::filesystem::remove_all(folder);
  REQUIRE(base::make_folders(folder).ok());
  for (const auto& [path, content] : tree) {
    const std::string full = folder + "/" + path;
    REQUIRE(base::make_folders(full.substr(0, full.rfind('/'))).ok());
    REQUIRE(base::replace_file(full, base::as_bytes(content)).ok());
  }
}

inline std::string file_text(const std::string& path) {
  const auto bytes = base::read_file(path, 1U << 30U);
  REQUIRE(bytes.ok());
  return std::string(base::as_text(*bytes));
}

struct ApiFixture {
  TempFolder folder;
  std::string bucket = folder / "bucket";
  std::string source = folder / "source";
  std::string target = folder / "target";

  api::PublishedFolder publish(const Tree& tree, const std::optional<std::string>& base = {}) {
    write_tree(source, tree);
    return publish_source(base);
  }
  api::PublishedFolder publish_source(const std::optional<std::string>& base = {}) {
    auto published = api::publish_folder({.folder = source, .uri = bucket, .base = base});
    INFO((published.ok() ? std::string()
                         : published.error().message + " / " + published.error().object));
    REQUIRE(published.ok());
    return std::move(*published);
  }
  api::Pulled pull(const std::string& version = "") {
    auto pulled = api::pull({.source = bucket, .folder = target, .version = version});
    INFO((pulled.ok() ? std::string() : pulled.error().message + " / " + pulled.error().object));
    REQUIRE(pulled.ok());
    return std::move(*pulled);
  }
  std::unique_ptr<api::Session> open() {
    auto session = api::Session::open({.source = bucket});
    REQUIRE(session.ok());
    return std::move(*session);
  }
  void check_target(const Tree& tree) {
    for (const auto& entry : tree) {
      INFO("file " << entry.first);
      CHECK(file_text(target + "/" + entry.first) == entry.second);
    }
  }
};

}  // namespace hfd::test
