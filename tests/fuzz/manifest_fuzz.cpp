// SPDX-License-Identifier: Apache-2.0
// Fuzzes the manifest parser: no input may crash it, and what it accepts must come back unchanged
// from its own writer. A canonical input (our own text) must be written as the same bytes.
#include <cstdint>
#include <cstdlib>

#include "base/bytes.hpp"
#include "lineage/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const hfd::base::ByteView input = std::as_bytes(std::span(data, size));
  const auto manifest = hfd::lineage::parse_manifest(input);
  if (!manifest.ok()) {
    return 0;
  }
  const std::string text = hfd::lineage::serialize_manifest(*manifest);
  const auto again = hfd::lineage::parse_manifest(hfd::base::as_bytes(text));
  if (!again.ok() || hfd::lineage::serialize_manifest(*again) != text) {
    std::abort();
  }
  return 0;
}
