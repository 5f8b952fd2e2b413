// SPDX-License-Identifier: Apache-2.0
#include "codec/delta_fixture.hpp"

#include <bit>

#include <doctest/doctest.h>

#include "base/hash.hpp"

namespace hfd::test {

base::Bytes make_safetensors(const std::vector<MadeTensor>& tensors, std::size_t pad) {
  std::string json = "{";
  std::size_t offset = 0;
  for (const MadeTensor& tensor : tensors) {
    json += json.size() > 1 ? "," : "";
    json += "\"" + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      json += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
    }
    json += "],\"data_offsets\":[" + std::to_string(offset) + ",";
    offset += tensor.data.size();
    json += std::to_string(offset) + "]}";
  }
  json += "}";
  json.append((pad - json.size() % pad) % pad, ' ');
  base::Bytes file;
  base::append_le(file, std::uint64_t{json.size()});
  base::append(file, base::as_bytes(json));
  for (const MadeTensor& tensor : tensors) {
    base::append(file, tensor.data);
  }
  return file;
}

base::Bytes random_bytes(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  base::Bytes bytes(count);
  for (std::byte& b : bytes) {
    b = static_cast<std::byte>(random());
  }
  return bytes;
}

base::Bytes random_bf16(std::size_t elements, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> weights(0.0F, 0.02F);
  base::Bytes bytes;
  bytes.reserve(2 * elements);
  for (std::size_t i = 0; i < elements; ++i) {
    base::append_le(
        bytes, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weights(random)) >> 16U));
  }
  return bytes;
}

base::Bytes nudged(const base::Bytes& bytes, std::size_t width, double share, int step,
                   unsigned seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> chance(0, 1);
  std::uniform_int_distribution<int> steps(-step, step);
  base::Bytes out = bytes;
  for (std::size_t at = 0; at + width <= out.size(); at += width) {
    if (chance(random) < share) {
      std::uint64_t word = 0;
      std::memcpy(&word, out.data() + at, width);
      word += static_cast<std::uint64_t>(static_cast<std::int64_t>(steps(random)));
      std::memcpy(out.data() + at, &word, width);
    }
  }
  return out;
}

MadeDelta make_delta(const base::Bytes& target, const std::vector<MadeSource>& sources,
                     std::uint32_t block_bytes, std::size_t threads, const std::string& path) {
  base::MemoryBytes target_bytes(target);
  std::vector<std::unique_ptr<base::MemoryBytes>> readers;
  std::vector<codec::SourceFile> files;
  for (const MadeSource& source : sources) {
    readers.push_back(std::make_unique<base::MemoryBytes>(*source.bytes));
    files.push_back({base::content_hash(*source.bytes), source.path, readers.back().get()});
  }
  codec::EncodeOptions options;
  options.target_path = path;
  options.block_bytes = block_bytes;
  base::ThreadPool pool("test-encode", threads);
  MadeDelta delta;
  auto encoded = codec::encode_delta(target_bytes, files, options, pool, [&](base::ByteView bytes) {
    base::append(delta.object, bytes);
    return Result<void>{};
  });
  REQUIRE_MESSAGE(encoded.ok(), (encoded.ok() ? "" : encoded.error().message));
  delta.encoded = std::move(*encoded);
  return delta;
}

Result<base::Bytes> apply_object(const base::Bytes& object,
                                 const std::vector<const base::Bytes*>& sources) {
  base::MemoryBytes object_bytes(object);
  HFD_TRY(const auto directory, codec::read_directory(object_bytes));
  std::vector<std::unique_ptr<base::MemoryBytes>> readers;
  std::vector<base::ReadableBytes*> found;
  for (const codec::SourceInfo& wanted : directory->sources()) {
    for (const base::Bytes* source : sources) {
      if (base::content_hash(*source) == wanted.sha256) {
        readers.push_back(std::make_unique<base::MemoryBytes>(*source));
        found.push_back(readers.back().get());
        break;
      }
    }
  }
  base::Bytes out;
  HFD_TRY_VOID(codec::apply_delta(object_bytes, found, [&](base::ByteView bytes) {
    base::append(out, bytes);
    return Result<void>{};
  }));
  return out;
}

MadeDelta check_round_trip(const base::Bytes& target, const std::vector<MadeSource>& sources,
                           std::uint32_t block_bytes, const std::string& path) {
  MadeDelta delta = make_delta(target, sources, block_bytes, 2, path);
  CHECK(delta.encoded.target_sha256 == base::content_hash(target));
  CHECK(delta.encoded.object == base::object_id(delta.object));
  CHECK(delta.encoded.object_bytes == delta.object.size());
  CHECK(delta.encoded.directory.end() == delta.object.size());
  std::vector<const base::Bytes*> bytes;
  for (const MadeSource& source : sources) {
    bytes.push_back(source.bytes);
  }
  const auto rebuilt = apply_object(delta.object, bytes);
  REQUIRE_MESSAGE(rebuilt.ok(), (rebuilt.ok() ? "" : rebuilt.error().message));
  CHECK(*rebuilt == target);
  return delta;
}

codec::DeltaInfo info_of(const base::Bytes& object) {
  base::MemoryBytes bytes(object);
  auto info = codec::delta_info(bytes);
  REQUIRE(info.ok());
  return *info;
}

}  // namespace hfd::test
