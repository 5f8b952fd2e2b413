// SPDX-License-Identifier: Apache-2.0
// A folder remote in a folder of its own. Used by unit tests only.
#pragma once

#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "base/file.hpp"
#include "remote/remote.hpp"
#include "temp_folder.hpp"

namespace hfd::test {

inline std::unique_ptr<remote::Remote> open_folder_remote(const std::string& path) {
  const auto uri = remote::parse_uri(path);
  REQUIRE(uri.ok());
  auto opened = remote::open_remote(*uri, true);
  REQUIRE(opened.ok());
  return std::move(*opened);
}

inline void put_text(remote::Remote& remote, const std::string& name, const std::string& text) {
  base::MemoryBytes bytes(base::as_bytes(text));
  const auto put = remote.put(name, bytes);
  INFO((put.ok() ? std::string() : put.error().message + " " + put.error().object));
  REQUIRE(put.ok());
}

inline base::Deadline soon() { return base::deadline_in(std::chrono::seconds(30)); }

inline std::string text_of(remote::Remote& remote, const std::string& name) {
  const auto bytes = remote::read_whole(remote, name, 1U << 20U, soon());
  REQUIRE(bytes.ok());
  return std::string(base::as_text(*bytes));
}

}  // namespace hfd::test
