// SPDX-License-Identifier: Apache-2.0
// Object names of refs, claims and hints, and what stands in them. Part of lineage; pure.
//
//   hfdelta/refs/<ref>/<seq>        seq: 10 digits; content: version id + "\n". Put-if-absent
//   remotes. hfdelta/refs/<ref>/<seq>-<id>   the same claim on remotes without put-if-absent (issue
//   B writes them) hfdelta/refs/<ref>/head         "<seq> <id>\n": a hint, may be old or missing
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hfdeltafs/types.hpp"

#include "base/bytes.hpp"

namespace hfd::lineage {

inline constexpr std::string_view refs_folder = "hfdelta/refs";
/// Larger than any claim or hint.
inline constexpr std::uint64_t claim_bytes_max = 256;

struct Claim {
  std::uint64_t sequence = 0;
  std::optional<VersionId> version;  ///< in the name; absent: it is the content
};

std::string ref_folder(std::string_view ref);
std::string claim_object(std::string_view ref, std::uint64_t sequence);
std::string hint_object(std::string_view ref);
/// Last segment of an object's name as a claim, or nothing.
std::optional<Claim> parse_claim_name(std::string_view name);
std::string claim_text(const VersionId& version);
/// `corrupt` when the content is no version id.
Result<VersionId> parse_claim_text(base::ByteView bytes);
std::string hint_text(std::uint64_t sequence, const VersionId& version);
/// The number in a hint; nothing when it makes no sense.
std::optional<std::uint64_t> parse_hint_text(base::ByteView bytes);

}  // namespace hfd::lineage
