// SPDX-License-Identifier: Apache-2.0
// JSON values of our own: ordered objects, 64-bit integers kept exact, duplicate keys refused, depth
// and size limits on parsing. Parsing is nlohmann-json's SAX parser (json.cpp only: the header costs
// 1.7 s a file); writing is ours, so that the same value always gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "hfdeltafs/result.hpp"

namespace hfd::base {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;
  Json(std::nullptr_t) {}                                   // NOLINT(google-explicit-constructor): literals read well
  Json(bool value) : value_(value) {}                       // NOLINT(google-explicit-constructor)
  Json(std::int64_t value) : value_(value) {}               // NOLINT(google-explicit-constructor)
  Json(std::uint64_t value) : value_(value) {}              // NOLINT(google-explicit-constructor)
  Json(int value) : value_(static_cast<std::int64_t>(value)) {}  // NOLINT(google-explicit-constructor)
  Json(unsigned value) : value_(static_cast<std::uint64_t>(value)) {}  // NOLINT(google-explicit-constructor)
  Json(double value) : value_(value) {}                     // NOLINT(google-explicit-constructor)
  Json(std::string value) : value_(std::move(value)) {}     // NOLINT(google-explicit-constructor)
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT(google-explicit-constructor)
  Json(const char* value) : value_(std::string(value)) {}   // NOLINT(google-explicit-constructor)
  Json(Array value) : value_(std::move(value)) {}           // NOLINT(google-explicit-constructor)
  Json(Object value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  static Json object() { return Json(Object{}); }
  static Json array() { return Json(Array{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }

  /// Checked views: nullptr or nothing when the value is of another kind.
  const Object* as_object() const { return std::get_if<Object>(&value_); }
  const Array* as_array() const { return std::get_if<Array>(&value_); }
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  const bool* as_bool() const { return std::get_if<bool>(&value_); }
  /// `corrupt` when not a non-negative integer.
  Result<std::uint64_t> as_unsigned() const;

  /// The member called `key`, or nullptr (also when this is no object).
  const Json* find(std::string_view key) const;
  /// Members that must be there and of that kind; `corrupt` naming the key otherwise.
  Result<const Json*> member(std::string_view key) const;
  Result<std::string> string_member(std::string_view key) const;
  Result<std::uint64_t> unsigned_member(std::string_view key) const;

  /// Appends a member (object) or an element (array). Precondition: this is one.
  Json& set(std::string key, Json value);
  Json& push(Json value);

  /// Compact text, members in insertion order, no white space. Strings are written as UTF-8; bytes
  /// that are not UTF-8 become U+FFFD, so callers carry such names in base64.
  std::string dump() const;
  /// The same with two-space indentation, for people.
  std::string dump_pretty() const;

 private:
  void write(std::string& out, int indent, int depth) const;
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

struct JsonLimits {
  std::size_t bytes_max = 512U << 20U;
  int depth_max = 64;
};

/// Parses one JSON document. Duplicate keys, non-UTF-8 text, trailing bytes other than white space,
/// too deep or too large: `corrupt`.
Result<Json> parse_json(ByteView text, const JsonLimits& limits);
inline Result<Json> parse_json(ByteView text) { return parse_json(text, JsonLimits{}); }

/// True when `text` is well-formed UTF-8 (no surrogates, no overlong forms).
bool is_utf8(std::string_view text);
/// RFC 4648 base64 with padding.
std::string to_base64(ByteView bytes);
Result<Bytes> from_base64(std::string_view text);

}  // namespace hfd::base
