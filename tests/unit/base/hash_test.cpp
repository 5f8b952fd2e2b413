// SPDX-License-Identifier: Apache-2.0
#include "base/hash.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace hfd::base {
namespace {

template <std::size_t n>
std::string hex(const std::array<std::byte, n>& digest) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : digest) {
    text += digits[std::to_integer<unsigned>(byte) >> 4U];
    text += digits[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

/// Bytes 0, 1, … 250, 0, 1, …: long enough to reach the loops for long inputs.
Bytes counting(std::size_t size) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = static_cast<std::byte>(i % 251);
  }
  return out;
}

TEST_SUITE("base/hash") {
  TEST_CASE("sha256 gives the answers of FIPS 180-4") {
    CHECK(content_hash({}).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(content_hash(as_bytes("abc")).hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(content_hash(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")).hex() ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  }

  TEST_CASE("sha256 in pieces is sha256 of the whole") {
    const Bytes bytes = counting(100'003);
    for (const std::size_t piece : {1U, 63U, 64U, 65U, 4096U}) {
      Sha256 hash;
      for (std::size_t at = 0; at < bytes.size(); at += piece) {
        hash.update(ByteView(bytes).subspan(at, std::min(piece, bytes.size() - at)));
      }
      CHECK(hash.finish() == sha256(bytes));
    }
  }

  TEST_CASE("xxh3-128 gives the answers of the xxHash project's own tool") {
    CHECK(hex(xxh3_128({})) == "99aa06d3014798d86001c324468d497f");
    CHECK(hex(xxh3_128(as_bytes("abc"))) == "06b05ab6733a618578af5f94892f3950");
    CHECK(hex(xxh3_128(counting(100'003))) == "b02e921ecad88f0facf33ba3cf61e369");
  }

  TEST_CASE("hex names come back and bad ones are refused") {
    const ContentHash hash = content_hash(as_bytes("abc"));
    const auto read = ContentHash::from_hex(hash.hex());
    REQUIRE(read.ok());
    CHECK(*read == hash);
    CHECK_FALSE(ContentHash::from_hex(hash.hex().substr(1)).ok());
    CHECK_FALSE(ContentHash::from_hex(hash.hex() + "0").ok());
    CHECK_FALSE(ContentHash::from_hex("g" + hash.hex().substr(1)).ok());
  }
}

}  // namespace
}  // namespace hfd::base
