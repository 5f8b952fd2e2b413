// SPDX-License-Identifier: Apache-2.0
// The [DIR|URI] of log, diff, tag and verify: a mount stands for its bucket and ref; anything else
// is what it says; nothing means the current folder.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/session.hpp"

namespace hfd::cli {

struct Place {
  std::string source;
  std::optional<std::string> base;  ///< of a mount: where its base is
  std::string ref;                  ///< of a mount; empty otherwise
};

Place find_place(const std::string& given);
/// Opens it; `ref` empty: the mount's own, else main.
Result<std::unique_ptr<api::Session>> open_place(const std::string& given, const std::string& ref);
/// True when a word can only be a DIR or URI, not a tag or version.
bool is_place(const std::string& word);
/// "12 B", "3.4 MB": powers of 1000, for people.
std::string people_bytes(std::uint64_t bytes);

}  // namespace hfd::cli
