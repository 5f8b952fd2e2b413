// SPDX-License-Identifier: Apache-2.0
#include "format/dtype.hpp"

#include <doctest/doctest.h>

using hfd::format::DType;

TEST_SUITE("format/dtype") {
  TEST_CASE("every dtype has a name that leads back to it") {
    for (int i = 0; i <= static_cast<int>(DType::u64); ++i) {
      const auto dtype = static_cast<DType>(i);
      CHECK(hfd::format::dtype_from_name(hfd::format::dtype_name(dtype)) == dtype);
      CHECK(hfd::format::dtype_bits(dtype) > 0);
    }
  }

  TEST_CASE("unknown names have no dtype") {
    for (const char* name : {"", "I4", "F128", "bf16", "BF16 "}) {
      CHECK_FALSE(hfd::format::dtype_from_name(name).has_value());
    }
  }

  TEST_CASE("words follow elements except for sub-byte and complex types") {
    CHECK(hfd::format::dtype_word_bytes(DType::bf16) == 2);
    CHECK(hfd::format::dtype_word_bytes(DType::f64) == 8);
    CHECK(hfd::format::dtype_word_bytes(DType::f4) == 1);
    CHECK(hfd::format::dtype_bits(DType::f4) == 4);
    CHECK(hfd::format::dtype_word_bytes(DType::c64) == 4);
    CHECK(hfd::format::dtype_bits(DType::c64) == 64);
  }
}
