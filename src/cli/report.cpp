// SPDX-License-Identifier: Apache-2.0
#include "cli/report.hpp"

#include <cstdio>

namespace hfd::cli {
namespace {

/// Errors are one line, whatever a path or a server's text holds.
std::string one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

}  // namespace

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return 2;
    case ErrorCode::not_found: return 3;
    case ErrorCode::incomplete: return 4;
    case ErrorCode::conflict: return 5;
    case ErrorCode::left_in_staging: return 6;
    case ErrorCode::permission: return 7;
    case ErrorCode::already_exists:
    case ErrorCode::corrupt:
    case ErrorCode::unavailable:
    case ErrorCode::no_space:
    case ErrorCode::read_only:
    case ErrorCode::stale:
    case ErrorCode::busy:
    case ErrorCode::unsupported:
    case ErrorCode::io: return 1;
  }
  return 1;
}

std::string error_line(const Error& error) {
  // The message reads "what: why"; the object stands between them.
  std::string what = error.message;
  std::string why;
  if (const std::size_t colon = what.rfind(": "); colon != std::string::npos && !error.object.empty()) {
    why = what.substr(colon + 2);
    what.resize(colon);
  }
  std::string line = "hfdeltafs: " + what;
  line += error.object.empty() ? "" : ": " + error.object;
  line += why.empty() ? "" : ": " + why;
  line += error.hint.empty() ? "" : "; " + error.hint;
  return one_line(line);
}

int report(const Error& error, bool json) {
  std::fprintf(stderr, "%s\n", error_line(error).c_str());
  if (json) {
    base::Json inner = base::Json::object();
    inner.set("code", error_code_name(error.code))
        .set("message", error.message)
        .set("object", error.object)
        .set("hint", error.hint);
    print_json(base::Json::object().set("error", std::move(inner)));
  }
  return exit_code(error.code);
}

int print_json(const base::Json& document) { return print_text(document.dump_pretty()); }

int print_text(const std::string& text) {
  std::fprintf(stdout, "%s\n", text.c_str());
  std::fflush(stdout);
  return 0;
}

void warn(const std::string& text) { std::fprintf(stderr, "hfdeltafs: %s\n", one_line(text).c_str()); }

}  // namespace hfd::cli
