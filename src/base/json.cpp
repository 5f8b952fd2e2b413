// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/check.hpp"

namespace hfd::base {
namespace {

/// Builds a Json from SAX events; stops at the first thing we refuse.
class Builder {
 public:
  explicit Builder(int depth_max) : depth_max_(depth_max) {}

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(std::int64_t value) { return add(Json(value)); }
  bool number_unsigned(std::uint64_t value) { return add(Json(value)); }
  bool number_float(double value, const std::string& /*text*/) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(std::vector<std::uint8_t>& /*value*/) { return fail("binary values are not JSON"); }
  bool start_object(std::size_t /*count*/) { return open(Json::object()); }
  bool start_array(std::size_t /*count*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    Level& level = levels_.back();
    if (!level.keys.insert(name).second) {
      return fail("the key \"" + name.substr(0, 100) + "\" stands twice in one object");
    }
    level.key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception& /*e*/) {
    return fail("not valid JSON near byte " + std::to_string(position));
  }

  const std::string& reason() const { return reason_; }
  Json take() { return std::move(root_); }

 private:
  struct Level {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
  };
  bool fail(std::string reason) {
    if (reason_.empty()) {
      reason_ = std::move(reason);
    }
    return false;
  }
  bool open(Json container) {
    if (levels_.size() >= static_cast<std::size_t>(depth_max_)) {
      return fail("nested too deeply");
    }
    levels_.push_back(Level{std::move(container), {}, {}});
    return true;
  }
  bool close() {
    Json done = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(done));
  }
  bool add(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = levels_.back();
    if (level.value.is_object()) {
      level.value.set(std::move(level.key), std::move(value));
      level.key.clear();
    } else {
      level.value.push(std::move(value));
    }
    return true;
  }

  int depth_max_;
  std::vector<Level> levels_;
  Json root_;
  std::string reason_;
};

/// Length of the well-formed UTF-8 sequence at `at`, 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(at);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    return tail(at + 1) ? 2 : 0;
  }
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned second = byte(at + 1);
    const bool overlong = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return tail(at + 1) && tail(at + 2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned second = byte(at + 1);
    const bool overlong = first == 0xF0 && second < 0x90;
    const bool beyond = first == 0xF4 && second > 0x8F;
    return tail(at + 1) && tail(at + 2) && tail(at + 3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += text[i++];
    } else if (byte == '\n') {
      out += "\\n";
      ++i;
    } else if (byte < 0x20) {
      static constexpr char digits[] = "0123456789abcdef";
      out += "\\u00";
      out += digits[byte >> 4U];
      out += digits[byte & 15U];
      ++i;
    } else if (const std::size_t n = utf8_length(text, i); n > 0) {
      out += text.substr(i, n);
      i += n;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  out += '"';
}

void new_line(std::string& out, int indent, int depth) {
  if (indent > 0) {
    out += '\n';
    out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
  }
}

constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

Result<std::uint64_t> Json::as_unsigned() const {
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) {
    return *value;
  }
  if (const auto* value = std::get_if<std::int64_t>(&value_); value != nullptr && *value >= 0) {
    return static_cast<std::uint64_t>(*value);
  }
  return Error{ErrorCode::corrupt, "not a non-negative integer"};
}

const Json* Json::find(std::string_view key) const {
  const Object* members = as_object();
  if (members == nullptr) {
    return nullptr;
  }
  const auto found = std::find_if(members->begin(), members->end(), [&](const Member& m) { return m.first == key; });
  return found == members->end() ? nullptr : &found->second;
}

Result<const Json*> Json::member(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return Error{ErrorCode::corrupt, "the key \"" + std::string(key) + "\" is missing"};
  }
  return value;
}

Result<std::string> Json::string_member(std::string_view key) const {
  HFD_TRY(const Json* value, member(key));
  const std::string* text = value->as_string();
  if (text == nullptr) {
    return Error{ErrorCode::corrupt, "\"" + std::string(key) + "\" is not a string"};
  }
  return *text;
}

Result<std::uint64_t> Json::unsigned_member(std::string_view key) const {
  HFD_TRY(const Json* value, member(key));
  return value->as_unsigned().in("\"" + std::string(key) + "\"");
}

Json& Json::set(std::string key, Json value) {
  auto* members = std::get_if<Object>(&value_);
  HFD_CHECK(members != nullptr);
  members->emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  auto* elements = std::get_if<Array>(&value_);
  HFD_CHECK(elements != nullptr);
  elements->push_back(std::move(value));
  return *this;
}

void Json::write(std::string& out, int indent, int depth) const {
  if (const auto* flag = as_bool()) {
    out += *flag ? "true" : "false";
  } else if (const auto* number = std::get_if<std::int64_t>(&value_)) {
    out += std::to_string(*number);
  } else if (const auto* positive = std::get_if<std::uint64_t>(&value_)) {
    out += std::to_string(*positive);
  } else if (const auto* real = std::get_if<double>(&value_)) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), *real);
    out += std::isfinite(*real) ? std::string_view(text.data(), static_cast<std::size_t>(end.ptr - text.data())) : "null";
  } else if (const auto* string = as_string()) {
    write_string(out, *string);
  } else if (const auto* elements = as_array()) {
    out += '[';
    for (std::size_t i = 0; i < elements->size(); ++i) {
      out += i > 0 ? "," : "";
      new_line(out, indent, depth + 1);
      (*elements)[i].write(out, indent, depth + 1);
    }
    if (!elements->empty()) {
      new_line(out, indent, depth);
    }
    out += ']';
  } else if (const auto* members = as_object()) {
    out += '{';
    for (std::size_t i = 0; i < members->size(); ++i) {
      out += i > 0 ? "," : "";
      new_line(out, indent, depth + 1);
      write_string(out, (*members)[i].first);
      out += indent > 0 ? ": " : ":";
      (*members)[i].second.write(out, indent, depth + 1);
    }
    if (!members->empty()) {
      new_line(out, indent, depth);
    }
    out += '}';
  } else {
    out += "null";
  }
}

std::string Json::dump() const {
  std::string out;
  write(out, 0, 0);
  return out;
}

std::string Json::dump_pretty() const {
  std::string out;
  write(out, 2, 0);
  return out;
}

Result<Json> parse_json(ByteView text, const JsonLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return Error{ErrorCode::corrupt, "the JSON text is too large"};
  }
  // The library would skip a byte order mark; no format that we read allows one.
  if (as_text(text).substr(0, 3) == "\xEF\xBB\xBF") {
    return Error{ErrorCode::corrupt, "the JSON text starts with a byte order mark"};
  }
  // It would also take a NUL for the end of the text and overlook what follows.
  if (as_text(text).find('\0') != std::string_view::npos) {
    return Error{ErrorCode::corrupt, "the JSON text holds a NUL byte"};
  }
  Builder builder(limits.depth_max);
  const std::string_view chars = as_text(text);
  if (!nlohmann::json::sax_parse(chars.begin(), chars.end(), &builder)) {
    return Error{ErrorCode::corrupt, builder.reason().empty() ? "not valid JSON" : builder.reason()};
  }
  return builder.take();
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t n = utf8_length(text, i);
    if (n == 0) {
      return false;
    }
    i += n;
  }
  return true;
}

std::string to_base64(ByteView bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = std::to_integer<std::uint32_t>(bytes[i]) << 16U;
    group |= i + 1 < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + 1]) << 8U : 0U;
    group |= i + 2 < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + 2]) : 0U;
    out += base64_digits[group >> 18U];
    out += base64_digits[(group >> 12U) & 63U];
    out += i + 1 < bytes.size() ? base64_digits[(group >> 6U) & 63U] : '=';
    out += i + 2 < bytes.size() ? base64_digits[group & 63U] : '=';
  }
  return out;
}

Result<Bytes> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return Error{ErrorCode::corrupt, "base64 text has a wrong length"};
  }
  Bytes out;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::string_view four = text.substr(i, 4);
    const bool last = i + 4 == text.size();
    const std::size_t pads = !last ? 0 : four[2] == '=' && four[3] == '=' ? 2 : four[3] == '=' ? 1 : 0;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t digit = k >= 4 - pads ? 0 : base64_digits.find(four[k]);
      if (digit == std::string_view::npos) {
        return Error{ErrorCode::corrupt, "base64 text has a character that is none"};
      }
      group = group << 6U | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t k = 0; k < 3 - pads; ++k) {
      out.push_back(static_cast<std::byte>(group >> (16U - 8U * k)));
    }
  }
  return out;
}

}  // namespace hfd::base
