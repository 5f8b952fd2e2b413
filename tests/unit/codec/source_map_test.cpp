// SPDX-License-Identifier: Apache-2.0
// What the encoder finds in its sources, told by the size of the object.
#include "codec/source_map.hpp"

#include <doctest/doctest.h>

#include "codec/delta_fixture.hpp"

using hfd::base::Bytes;
using namespace hfd::test;  // NOLINT(google-build-using-namespace): helpers of the tests

namespace {

std::vector<MadeTensor> layers(std::size_t count, const std::string& prefix) {
  std::vector<MadeTensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    tensors.push_back({prefix + std::to_string(i),
                       "BF16",
                       {64, 64},
                       random_bf16(4096, static_cast<unsigned>(i) + 1)});
  }
  return tensors;
}

}  // namespace

TEST_SUITE("codec/source_map") {
  TEST_CASE("renamed tensors are found by content, also when slightly changed") {
    const Bytes source = make_safetensors(layers(20, "model.layers."));
    std::vector<MadeTensor> renamed = layers(20, "lm.blocks.");
    CHECK(check_round_trip(make_safetensors(renamed), {{"model.safetensors", &source}})
              .object.size() < 1000);
    for (MadeTensor& tensor : renamed) {
      tensor.data = nudged(tensor.data, 2, 0.01, 1, 7);
    }
    CHECK(check_round_trip(make_safetensors(renamed), {{"model.safetensors", &source}})
              .object.size() < 4000);
  }

  TEST_CASE("tensors are found in whichever shard they are") {
    const std::vector<MadeTensor> all = layers(12, "l");
    const Bytes one = make_safetensors({all.begin(), all.begin() + 5});
    const Bytes two = make_safetensors({all.begin() + 5, all.end()});
    const Bytes target = make_safetensors({all.begin() + 2, all.begin() + 10});
    const MadeDelta delta = check_round_trip(target, {{"1", &one}, {"2", &two}});
    CHECK(delta.object.size() < 1000);
    CHECK(delta.encoded.sources.size() == 2);
    CHECK(delta.encoded.changed_elements == 0);
  }

  TEST_CASE("the file with the same path wins over other files with the same names") {
    const std::vector<MadeTensor> tensors = layers(4, "l");
    std::vector<MadeTensor> others = tensors;
    for (MadeTensor& tensor : others) {
      tensor.data = nudged(tensor.data, 2, 0.5, 3, 1);
    }
    const Bytes same = make_safetensors(tensors);
    const Bytes other = make_safetensors(others);
    const MadeDelta delta =
        check_round_trip(same, {{"other.safetensors", &other}, {"model.safetensors", &same}});
    CHECK(delta.object.size() < 300);
    REQUIRE(delta.encoded.sources.size() == 1);
  }

  TEST_CASE("rows that both have are mapped when a table grows or shrinks") {
    const Bytes rows = random_bf16(100 * 64, 1);
    Bytes more = rows;
    hfd::base::append(more, random_bf16(8 * 64, 2));
    const Bytes small = make_safetensors({{"embed", "BF16", {100, 64}, rows}});
    const Bytes large = make_safetensors({{"embed", "BF16", {108, 64}, more}});
    const MadeDelta grown = check_round_trip(large, {{"model.safetensors", &small}});
    CHECK(grown.object.size() < 1600);
    CHECK(grown.encoded.changed_elements == 8 * 64);
    CHECK(check_round_trip(small, {{"model.safetensors", &large}}).object.size() < 400);
  }

  TEST_CASE("renumbered layers are found although their names are taken") {
    const std::vector<MadeTensor> all = layers(10, "l");
    std::vector<MadeTensor> fewer(all.begin() + 3, all.end());
    for (std::size_t i = 0; i < fewer.size(); ++i) {
      fewer[i].name = "l" + std::to_string(i);
    }
    const Bytes source = make_safetensors(all);
    CHECK(
        check_round_trip(make_safetensors(fewer), {{"model.safetensors", &source}}).object.size() <
        1000);
  }

  TEST_CASE("tied tensors: one source may serve several targets") {
    const MadeTensor embed{"embed", "BF16", {64, 64}, random_bf16(4096, 1)};
    MadeTensor head = embed;
    head.name = "head";
    const Bytes source = make_safetensors({embed});
    CHECK(check_round_trip(make_safetensors({embed, head}), {{"model.safetensors", &source}})
              .object.size() < 500);
  }

  TEST_CASE("a file that its header does not fit is coded as bytes") {
    Bytes file = make_safetensors(layers(3, "l"));
    const Bytes source = file;
    file.resize(file.size() - 1000);
    check_round_trip(file, {{"model.safetensors", &source}});
    file.resize(source.size() + 1000, std::byte{5});
    check_round_trip(file, {{"model.safetensors", &source}});
    check_round_trip(source, {{"model.safetensors", &file}});
  }
}
