// SPDX-License-Identifier: Apache-2.0
// Files without tensors, and the promise: never larger than zstd -3 of the file + 1 % + 64 bytes.
#include <doctest/doctest.h>

#include "codec/delta_fixture.hpp"
#include "codec/zstd_frame.hpp"

using hfd::base::Bytes;
using namespace hfd::test;  // NOLINT(google-build-using-namespace): helpers of the tests

namespace {

/// Text with the entropy of prose, made of a small vocabulary.
Bytes made_text(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::string> words;
  for (int i = 0; i < 2000; ++i) {
    std::string word;
    for (unsigned n = 2 + random() % 8; n > 0; --n) {
      word += static_cast<char>('a' + random() % 26);
    }
    words.push_back(word + " ");
  }
  std::string text;
  while (text.size() < size) {
    text += words[random() % (1 + random() % words.size())];
  }
  return hfd::base::to_bytes(text.substr(0, size));
}

std::size_t promised(const Bytes& target) {
  Bytes frame;
  const std::size_t size = hfd::codec::zstd_compress(target, {}, 3, frame);
  return size + size / 100 + 64;
}

Bytes repeated(const Bytes& unit, std::size_t size) {
  Bytes bytes;
  bytes.reserve(size + unit.size());
  while (bytes.size() < size) {
    hfd::base::append(bytes, unit);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

TEST_SUITE("codec/opaque") {
  TEST_CASE("no object is larger than promised") {
    const std::vector<Bytes> targets = {
        made_text(550000, 1),
        made_text(3U << 20U, 2),
        random_bytes(1U << 20U, 3),
        Bytes(70000, std::byte{0}),
        Bytes(1U << 20U, std::byte{0}),
        Bytes(1U << 20U, std::byte{'x'}),
        repeated(hfd::base::to_bytes("abcdefghij"), 1U << 20U),
        repeated(random_bytes(300000, 4), 20U << 20U),
        repeated(random_bytes(1500000, 5), 20U << 20U),
        repeated(random_bytes(3000000, 6), 20U << 20U),
    };
    for (std::size_t i = 0; i < targets.size(); ++i) {
      CAPTURE(i);
      const MadeDelta delta = check_round_trip(targets[i], {}, 256U << 10U, "file.bin");
      CHECK(delta.object.size() <= promised(targets[i]));
    }
  }

  TEST_CASE("an unrelated source does not break the promise") {
    const Bytes source = random_bytes(1U << 20U, 1);
    const Bytes target = made_text(1U << 20U, 2);
    const MadeDelta delta = check_round_trip(target, {{"f", &source}}, 256U << 10U, "f");
    CHECK(delta.object.size() <= promised(target));
  }

  TEST_CASE("appends, edits in place and insertions cost little") {
    const Bytes source = made_text(600000, 1);
    Bytes appended = source;
    hfd::base::append(appended, made_text(1000, 2));
    CHECK(check_round_trip(appended, {{"f", &source}}, 256U << 10U, "f").object.size() < 1500);
    Bytes edited = source;
    edited[300000] = std::byte{'!'};
    CHECK(check_round_trip(edited, {{"f", &source}}, 256U << 10U, "f").object.size() < 300);
    Bytes inserted(source.begin(), source.begin() + 100);
    hfd::base::append(inserted, hfd::base::as_bytes("inserted"));
    inserted.insert(inserted.end(), source.begin() + 100, source.end());
    CHECK(check_round_trip(inserted, {{"f", &source}}, 256U << 10U, "f").object.size() < 3000);
  }

  TEST_CASE("long repeats are coded as one stream and any block of it comes back alone") {
    const Bytes target = repeated(random_bytes(1500000, 7), 40U << 20U);
    const MadeDelta delta = check_round_trip(target, {}, 256U << 10U, "f");
    CHECK(delta.object.size() < 2000000);
  }
}
