// SPDX-License-Identifier: Apache-2.0
// Looks through an LMDB file before LMDB maps it: LMDB trusts its pages, and a damaged or cut file
// would end the process (SIGSEGV, SIGBUS, an assertion) instead of giving an error. Used by
// tables.cpp only.
#pragma once

#include <string>

#include "hfdeltafs/result.hpp"

namespace hfd::store {

/// `corrupt` with the reason when the file is no whole, well-formed LMDB file. A missing or empty
/// one is fine. Nobody may have it open for writing.
Result<void> check_tables_file(const std::string& file);

}  // namespace hfd::store
