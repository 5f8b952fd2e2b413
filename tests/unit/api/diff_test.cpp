// SPDX-License-Identifier: Apache-2.0
#include "api/diff.hpp"

#include <doctest/doctest.h>

#include "api/api_fixture.hpp"

namespace hfd::api {
namespace {

using test::ApiFixture;
using test::matrix;
using test::safetensors;
using test::TestTensor;
using test::Tree;

VersionDifference diff(ApiFixture& f, const Tree& a, const Tree& b) {
  f.publish(a);
  f.publish(b);
  const auto session = f.open();
  auto difference = diff_versions(*session, *session->version("v1"), *session->version("v2"));
  INFO((difference.ok() ? std::string() : difference.error().message));
  REQUIRE(difference.ok());
  return std::move(*difference);
}

const TensorDifference& named(const VersionDifference& difference, const std::string& name) {
  for (const TensorDifference& tensor : difference.tensors) {
    if (tensor.name == name) {
      return tensor;
    }
  }
  FAIL("no tensor " << name);
  return difference.tensors.front();
}

TEST_SUITE("api/diff") {
  TEST_CASE("files are added, removed and changed") {
    ApiFixture f;
    const auto d =
        diff(f, Tree{{"a", "1"}, {"b", "1"}, {"c", "1"}}, Tree{{"a", "1"}, {"b", "2"}, {"d", "1"}});
    CHECK(d.files_added == std::vector<std::string>{"d"});
    CHECK(d.files_removed == std::vector<std::string>{"c"});
    CHECK(d.files_changed == std::vector<std::string>{"b"});
    CHECK(d.tensors.empty());
  }

  TEST_CASE("each tensor has a status and exact counts") {
    ApiFixture f;
    const auto same = matrix("same", 10, 1);
    auto changed = matrix("changed", 2000, 2);
    auto before = changed;
    changed.bytes[0] = static_cast<char>(changed.bytes[0] ^ 1);
    changed.bytes[1] = static_cast<char>(changed.bytes[1] ^ 1);
    changed.bytes[1'000'000] = static_cast<char>(changed.bytes[1'000'000] ^ 1);
    auto renamed = matrix("old.name", 20, 3);
    auto renamed_now = renamed;
    renamed_now.name = "new.name";
    const TestTensor retyped{"retyped", "BF16", {2}, "abcd"};
    const TestTensor retyped_now{"retyped", "F32", {1}, "abcd"};
    const auto grown = matrix("grown", 4, 5);
    auto grown_now = grown;
    grown_now.shape = {6, 256};
    grown_now.bytes += test::noise(1024, 6);
    const auto d =
        diff(f,
             Tree{{"m.safetensors",
                   safetensors({same, before, renamed, retyped, grown, matrix("gone", 3, 7)})}},
             Tree{{"m.safetensors", safetensors({same, changed, renamed_now, retyped_now, grown_now,
                                                 matrix("new", 3, 8)})}});
    CHECK(named(d, "same").status == TensorStatus::same);
    CHECK(named(d, "same").changed_elements == 0);
    CHECK(named(d, "changed").status == TensorStatus::changed);
    CHECK(named(d, "changed").changed_elements == 2);
    CHECK(named(d, "changed").elements == 512'000);
    CHECK(named(d, "changed").bytes == 1'024'000);
    CHECK(named(d, "new.name").status == TensorStatus::renamed);
    CHECK(named(d, "new.name").from == "old.name");
    CHECK(named(d, "retyped").status == TensorStatus::retyped);
    CHECK(named(d, "retyped").dtype == "F32");
    CHECK(named(d, "grown").status == TensorStatus::changed);
    CHECK(named(d, "grown").changed_elements == 512);
    CHECK(named(d, "grown").shape == std::vector<std::uint64_t>{6, 256});
    CHECK(named(d, "gone").status == TensorStatus::removed);
    CHECK(named(d, "new").status == TensorStatus::added);
    CHECK(named(d, "new").changed_elements == 768);
    CHECK(d.tensors.size() == 7);
  }

  TEST_CASE("a tensor that moved to another file is compared with itself") {
    ApiFixture f;
    const auto a = matrix("a", 300, 1);
    const auto b = matrix("b", 300, 2);
    const auto d =
        diff(f, Tree{{"1.safetensors", safetensors({a})}, {"2.safetensors", safetensors({b})}},
             Tree{{"all.safetensors", safetensors({a, b})}});
    CHECK(named(d, "a").status == TensorStatus::same);
    CHECK(named(d, "a").from_path == "1.safetensors");
    CHECK(named(d, "b").from_path == "2.safetensors");
  }

  TEST_CASE("zero-size and scalar tensors, and files that are no safetensors") {
    ApiFixture f;
    const auto d = diff(
        f,
        Tree{{"m.safetensors", safetensors({{"z", "F32", {0, 4}, ""}, {"s", "F32", {}, "abcd"}})},
             {"bad.safetensors", "<html>"}},
        Tree{{"m.safetensors", safetensors({{"z", "F32", {0, 4}, ""}, {"s", "F32", {}, "abce"}})},
             {"bad.safetensors", "7"}});
    CHECK(d.tensors.size() == 2);
    CHECK(named(d, "z").status == TensorStatus::same);
    CHECK(named(d, "s").changed_elements == 1);
  }
}

}  // namespace
}  // namespace hfd::api
