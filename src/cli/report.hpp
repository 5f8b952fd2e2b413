// SPDX-License-Identifier: Apache-2.0
// How commands speak: the one error line, the JSON form of an error, and exit codes. The only place
// where an ErrorCode becomes an exit code (interface.md, "General").
#pragma once

#include <string>

#include "base/json.hpp"
#include "hfdeltafs/result.hpp"

namespace hfd::cli {

/// 0 ok, 1 failed, 2 usage, 3 not found, 4 held back, 5 conflict, 6 left in staging, 7 no permission.
int exit_code(ErrorCode code);
/// `hfdeltafs: WHAT: OBJECT: WHY; what to do`, one line without a newline at its end.
std::string error_line(const Error& error);
/// Prints the line on stderr and, with `json`, `{"error":{…}}` on stdout; returns the exit code.
int report(const Error& error, bool json);
/// Prints a document on stdout, pretty, with a newline. Returns 0.
int print_json(const base::Json& document);
/// Prints text on stdout. Returns 0.
int print_text(const std::string& text);
/// A warning line on stderr.
void warn(const std::string& text);

}  // namespace hfd::cli
