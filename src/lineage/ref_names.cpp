// SPDX-License-Identifier: Apache-2.0
#include "lineage/ref_names.hpp"

namespace hfd::lineage {
namespace {

constexpr std::size_t sequence_digits = 10;

std::optional<std::uint64_t> parse_sequence(std::string_view digits) {
  if (digits.size() != sequence_digits) {
    return std::nullopt;
  }
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::string sequence_text(std::uint64_t sequence) {
  std::string digits = std::to_string(sequence);
  if (digits.size() < sequence_digits) {
    digits.insert(0, sequence_digits - digits.size(), '0');
  }
  return digits;
}

}  // namespace

std::string ref_folder(std::string_view ref) {
  return std::string(refs_folder) + "/" + std::string(ref);
}
std::string claim_object(std::string_view ref, std::uint64_t sequence) {
  return ref_folder(ref) + "/" + sequence_text(sequence);
}
std::string hint_object(std::string_view ref) { return ref_folder(ref) + "/head"; }

std::optional<Claim> parse_claim_name(std::string_view name) {
  const auto sequence = parse_sequence(name.substr(0, sequence_digits));
  if (!sequence) {
    return std::nullopt;
  }
  if (name.size() == sequence_digits) {
    return Claim{*sequence, std::nullopt};
  }
  if (name[sequence_digits] != '-') {
    return std::nullopt;
  }
  const auto version = VersionId::from_hex(name.substr(sequence_digits + 1));
  return version.ok() ? std::optional<Claim>(Claim{*sequence, *version}) : std::nullopt;
}

std::string claim_text(const VersionId& version) { return version.hex() + "\n"; }

Result<VersionId> parse_claim_text(base::ByteView bytes) {
  std::string_view text = base::as_text(bytes);
  if (!text.empty() && text.back() == '\n') {
    text.remove_suffix(1);
  }
  auto version = VersionId::from_hex(text);
  if (!version.ok()) {
    return Error{ErrorCode::corrupt, "cannot read the claim: it does not hold a version id"};
  }
  return version;
}

std::string hint_text(std::uint64_t sequence, const VersionId& version) {
  return sequence_text(sequence) + " " + version.hex() + "\n";
}

std::optional<std::uint64_t> parse_hint_text(base::ByteView bytes) {
  return parse_sequence(base::as_text(bytes).substr(0, sequence_digits));
}

}  // namespace hfd::lineage
