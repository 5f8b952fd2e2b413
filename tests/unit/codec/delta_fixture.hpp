// SPDX-License-Identifier: Apache-2.0
// Makes safetensors files, delta objects and their targets in memory. Used by codec tests only.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "codec/apply.hpp"
#include "codec/delta_writer.hpp"

namespace hfd::test {

struct MadeTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  base::Bytes data;
};

/// A safetensors file; the header is padded with spaces to a multiple of `pad`.
base::Bytes make_safetensors(const std::vector<MadeTensor>& tensors, std::size_t pad = 8);

base::Bytes random_bytes(std::size_t count, unsigned seed);
/// Weights of a normal distribution as bf16.
base::Bytes random_bf16(std::size_t elements, unsigned seed);
/// A copy in which about `share` of the words of `width` bytes move by up to `step`.
base::Bytes nudged(const base::Bytes& bytes, std::size_t width, double share, int step,
                   unsigned seed);

struct MadeSource {
  std::string path;
  const base::Bytes* bytes = nullptr;
};

struct MadeDelta {
  base::Bytes object;
  codec::EncodedDelta encoded;
};

/// Encodes on `threads` threads; the test fails when that fails.
MadeDelta make_delta(const base::Bytes& target, const std::vector<MadeSource>& sources,
                     std::uint32_t block_bytes = 256U << 10U, std::size_t threads = 2,
                     const std::string& path = "model.safetensors");

/// Applies with the sources among `sources` that the object names.
Result<base::Bytes> apply_object(const base::Bytes& object,
                          const std::vector<const base::Bytes*>& sources);

/// Encodes, applies, and checks that the target comes back.
MadeDelta check_round_trip(const base::Bytes& target, const std::vector<MadeSource>& sources,
                           std::uint32_t block_bytes = 256U << 10U,
                           const std::string& path = "model.safetensors");

codec::DeltaInfo info_of(const base::Bytes& object);

}  // namespace hfd::test
