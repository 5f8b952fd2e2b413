// SPDX-License-Identifier: Apache-2.0
// Counts the elements in which two runs of tensor bytes differ. Part of api (diff). Pure.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"

namespace hfd::api {

/// Elements of `bits` bits each (4, 6, or a multiple of 8; least significant bits first) that
/// differ between equally long runs which begin at an element boundary. Bits after the last whole
/// element are not looked at.
std::uint64_t count_changed_elements(base::ByteView a, base::ByteView b, unsigned bits);

}  // namespace hfd::api
