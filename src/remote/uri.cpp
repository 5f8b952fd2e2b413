// SPDX-License-Identifier: Apache-2.0
// What a SOURCE or URI means (interface.md, "Naming things"). A canonical file URI is
// percent-encoded (RFC 3986) so that any path, whatever its bytes, survives in JSON and comes back
// the same.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "remote/remote.hpp"

namespace hfd::remote {
namespace {

constexpr std::size_t uri_bytes_max = 8192;

Error nonsense(std::string why, const std::string& text) {
  Error error{ErrorCode::invalid_argument, "cannot tell what this names: " + std::move(why),
              text.substr(0, 200)};
  return std::move(error).with_hint(
      "write a path with a leading ./ or /, NS/NAME for a Hub repo, or a URI such as "
      "file:///folder, "
      "hf://buckets/NS/NAME or s3://BUCKET/PREFIX");
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool is_plain(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("-._~/!$&'()*+,;=:@").find(c) != std::string_view::npos;
}

std::string percent_encoded(std::string_view path) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : path) {
    if (is_plain(c)) {
      out += c;
    } else {
      const auto value = static_cast<unsigned char>(c);
      out += '%';
      out += digits[value >> 4U];
      out += digits[value & 15U];
    }
  }
  return out;
}

/// -1 for a character that is no hex digit.
int hex_digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

Result<std::string> percent_decoded(std::string_view text, const std::string& whole) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return nonsense("a % in a URI is followed by two hex digits", whole);
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// Absolute, without ".", ".." or doubled slashes (textually: symlinks are not looked at), no slash
/// at the end.
Result<ParsedUri> folder_at(std::string path, const std::string& whole) {
  if (path.find('\0') != std::string::npos) {
    return nonsense("a path holds no NUL", whole);
  }
  if (path == "~" || starts_with(path, "~/")) {
    const char* home =
        std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): nothing sets the environment
    if (home == nullptr || *home == '\0') {
      return nonsense("HOME is not set", whole);
    }
    path = std::string(home) + path.substr(1);
  } else if (starts_with(path, "~")) {
    return nonsense("the home of another user has to be written out", whole);
  }
  std::error_code failed;
  std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  if (failed) {
    return nonsense("the current folder has no name any more", whole);
  }
  std::string normal = absolute.lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') {
    normal.pop_back();
  }
  if (starts_with(normal, "//")) {
    normal.erase(0, 1);
  }
  return ParsedUri{UriKind::folder, "file://" + percent_encoded(normal), normal};
}

bool is_hub_name(std::string_view name) {
  const bool fits = !name.empty() && name.size() <= 96 && name != "." && name != "..";
  return fits && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

/// Splits at the first `mark`; the second part is empty when there is none.
std::array<std::string_view, 2> cut(std::string_view text, char mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) {
    return {text, {}};
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

std::string_view without_end_slashes(std::string_view text) {
  while (!text.empty() && text.back() == '/') {
    text.remove_suffix(1);
  }
  return text;
}

Error no_hub_name(const std::string& whole) {
  return nonsense("a Hub URI is hf://NS/NAME, hf://datasets/NS/NAME or hf://buckets/NS/NAME",
                  whole);
}

/// NS/NAME[@REV][/PATH] behind what its kind begins with.
Result<ParsedUri> hub_named(UriKind kind, std::string front, std::string_view rest,
                            const std::string& whole) {
  const auto [space, after_space] = cut(rest, '/');
  const auto [named, path] = cut(after_space, '/');
  const auto [name, revision] = cut(named, '@');
  if (!is_hub_name(space) || !is_hub_name(name) ||
      (named.size() != name.size() && revision.empty())) {
    return no_hub_name(whole);
  }
  if (kind == UriKind::hub_repo &&
      (space == "models" || space == "datasets" || space == "buckets")) {
    front += front == "hf://" ? "models/" : "";  // a namespace that reads like a kind
  }
  ParsedUri uri{kind, front + std::string(space) + "/" + std::string(named), {}};
  if (!path.empty()) {
    uri.canonical += "/" + std::string(path);
  }
  return uri;
}

/// What follows "hf://": [models/|datasets/|buckets/]NS/NAME[@REV][/PATH].
Result<ParsedUri> hub_at(std::string_view rest, const std::string& whole) {
  rest = without_end_slashes(rest);
  if (const std::string_view kind = "buckets/"; starts_with(rest, kind)) {
    return hub_named(UriKind::hub_bucket, "hf://buckets/", rest.substr(kind.size()), whole);
  }
  if (const std::string_view kind = "datasets/"; starts_with(rest, kind)) {
    return hub_named(UriKind::hub_repo, "hf://datasets/", rest.substr(kind.size()), whole);
  }
  if (const std::string_view kind = "models/"; starts_with(rest, kind)) {
    rest.remove_prefix(kind.size());
  }
  return hub_named(UriKind::hub_repo, "hf://", rest, whole);
}

Result<ParsedUri> file_uri(std::string_view rest, const std::string& whole) {
  if (starts_with(rest, "localhost/")) {
    rest.remove_prefix(std::string_view("localhost").size());
  }
  if (!starts_with(rest, "/")) {
    return nonsense("a file URI holds an absolute path: file:///folder", whole);
  }
  HFD_TRY(std::string path, percent_decoded(rest, whole));
  return folder_at(std::move(path), whole);
}

Result<ParsedUri> http_uri(std::string_view scheme, std::string_view rest,
                           const std::string& whole) {
  const auto [authority, path] = cut(rest, '/');
  const std::size_t at =
      authority.rfind('@');  // a name and password never become part of a URI that is shown
  const std::string_view host = at == std::string_view::npos ? authority : authority.substr(at + 1);
  if (host.empty()) {
    return nonsense("an http URI names a host", whole);
  }
  ParsedUri uri{UriKind::http, std::string(scheme) + "://" + std::string(host), {}};
  if (const std::string_view trimmed = without_end_slashes(path); !trimmed.empty()) {
    uri.canonical += "/" + std::string(trimmed);
  }
  return uri;
}

Result<ParsedUri> uri_of_scheme(std::string_view scheme, std::string_view rest,
                                const std::string& whole) {
  if (scheme == "file") {
    return file_uri(rest, whole);
  }
  if (scheme == "hf") {
    return hub_at(rest, whole);
  }
  if (scheme == "s3") {
    rest = without_end_slashes(rest);
    if (rest.empty() || rest.front() == '/') {
      return nonsense("an S3 URI is s3://BUCKET/PREFIX", whole);
    }
    return ParsedUri{UriKind::s3, "s3://" + std::string(rest), {}};
  }
  if (scheme == "http" || scheme == "https") {
    return http_uri(scheme, rest, whole);
  }
  return nonsense("the scheme is not one of file, hf, s3, http, https", whole);
}

}  // namespace

Result<ParsedUri> parse_uri(const std::string& text) {
  if (text.empty()) {
    return nonsense("it is empty", text);
  }
  if (text.size() > uri_bytes_max || text.find('\0') != std::string::npos) {
    return nonsense("it is too long or holds a NUL", text);
  }
  if (text.front() == '/' || text.front() == '.' || text.front() == '~') {
    return folder_at(text, text);
  }
  if (const std::size_t at = text.find("://"); at != std::string::npos) {
    return uri_of_scheme(std::string_view(text).substr(0, at),
                         std::string_view(text).substr(at + 3), text);
  }
  if (std::count(text.begin(), text.end(), '/') == 1 && text.back() != '/') {
    return hub_named(UriKind::hub_repo, "hf://", text,
                     text);  // models/foo is a repo of the namespace models
  }
  return nonsense("it is neither a path nor a Hub repo", text);
}

}  // namespace hfd::remote
