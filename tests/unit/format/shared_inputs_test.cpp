// SPDX-License-Identifier: Apache-2.0
// Every one-file case of the shared material, against what safetensors 0.8.0 said about it.
#include <algorithm>
#include <iostream>
#include <string>

#include <doctest/doctest.h>

#include "base/file.hpp"
#include "base/json.hpp"
#include "format/header.hpp"
#include "format/shared_folder.hpp"

namespace {

using hfd::base::Bytes;
using hfd::base::ByteView;
using hfd::base::Json;

/// Accepted as the library does: the header parses and demands exactly the file's size.
hfd::Result<hfd::format::Header> open_like_the_library(const Bytes& file) {
  const ByteView bytes(file);
  HFD_TRY(const std::uint64_t json_bytes,
          hfd::format::header_json_bytes(bytes.first(std::min<std::size_t>(8, bytes.size())),
                                         bytes.size()));
  HFD_TRY(hfd::format::Header header, hfd::format::parse_header(bytes.subspan(8, json_bytes)));
  if (header.file_bytes != bytes.size()) {
    return hfd::Error{hfd::ErrorCode::corrupt, "another size than the header demands"};
  }
  return header;
}

void compare_tensors(const hfd::format::Header& header, const Json& expected) {
  const Json::Array* tensors =
      expected.find("tensors") == nullptr ? nullptr : expected.find("tensors")->as_array();
  if (tensors == nullptr) {
    return;
  }
  CHECK(header.tensors.size() == tensors->size());
  for (const Json& tensor : *tensors) {
    const std::string name = tensor.string_member("name").value();
    CAPTURE(name);
    const auto found = std::find_if(header.tensors.begin(), header.tensors.end(),
                                    [&](const auto& candidate) { return candidate.name == name; });
    REQUIRE(found != header.tensors.end());
    CHECK(found->range.size == tensor.unsigned_member("nbytes").value());
    const Json::Array* offsets = tensor.find("data_offsets")->as_array();
    CHECK(found->range.offset - header.data_offset == (*offsets)[0].as_unsigned().value());
  }
}

}  // namespace

TEST_SUITE("format/shared_inputs") {
  TEST_CASE("every shared safetensors file is accepted or refused as by the library") {
    const std::string inputs = hfd::test::shared_folder() + "/cases/inputs";
    const auto text = hfd::base::read_file(inputs + "/expected.json", 64U << 20U);
    if (!text.ok()) {
      std::cout << "SKIP format/shared_inputs: no " << inputs << "/expected.json\n";
      return;
    }
    const auto expected = hfd::base::parse_json(*text);
    REQUIRE(expected.ok());
    const Json::Object* files = expected->find("files")->as_object();
    REQUIRE(files != nullptr);
    int checked = 0;
    for (const auto& [path, facts] : *files) {
      const Json* verdict = facts.find("safe_open");
      if (verdict == nullptr || path.rfind("st/", 0) != 0) {
        continue;
      }
      const std::string shown = path;  // clang 14 captures no structured binding
      CAPTURE(shown);
      const auto file = hfd::base::read_file(inputs + "/" + path, 256U << 20U);
      REQUIRE(file.ok());
      const auto header = open_like_the_library(*file);
      REQUIRE(verdict->as_bool() != nullptr);
      const bool accepted = *verdict->as_bool();
      CHECK(header.ok() == accepted);
      if (header.ok() && accepted) {
        compare_tensors(*header, facts);
      }
      ++checked;
    }
    CHECK(checked > 50);
  }
}
