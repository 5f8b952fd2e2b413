// SPDX-License-Identifier: Apache-2.0
#include "fuse/errno.hpp"

#include <cerrno>
#include <map>

#include <doctest/doctest.h>

namespace hfd::fuse {
namespace {

const std::map<ErrorCode, int> name_errnos{
    {ErrorCode::not_found, ENOENT},
    {ErrorCode::invalid_argument, EINVAL},
    {ErrorCode::already_exists, EEXIST},
    {ErrorCode::corrupt, EIO},
    {ErrorCode::unavailable, EIO},
    {ErrorCode::permission, EACCES},
    {ErrorCode::no_space, ENOSPC},
    {ErrorCode::read_only, EROFS},
    {ErrorCode::stale, ESTALE},
    {ErrorCode::busy, EBUSY},
    {ErrorCode::incomplete, EIO},
    {ErrorCode::conflict, EIO},
    {ErrorCode::left_in_staging, EIO},
    {ErrorCode::unsupported, EOPNOTSUPP},
    {ErrorCode::io, EIO},
};

const std::map<ErrorCode, int> read_errnos{
    {ErrorCode::not_found, EIO},        {ErrorCode::invalid_argument, EINVAL},
    {ErrorCode::already_exists, EIO},   {ErrorCode::corrupt, EIO},
    {ErrorCode::unavailable, EIO},      {ErrorCode::permission, EACCES},
    {ErrorCode::no_space, ENOSPC},      {ErrorCode::read_only, EIO},
    {ErrorCode::stale, EIO},            {ErrorCode::busy, EIO},
    {ErrorCode::incomplete, EIO},       {ErrorCode::conflict, EIO},
    {ErrorCode::left_in_staging, EIO},  {ErrorCode::unsupported, EIO},
    {ErrorCode::io, EIO},
};

Error with_errno(ErrorCode code, int number) {
  Error error{code, "it failed"};
  error.os_errno = number;
  return error;
}

TEST_SUITE("fuse/errno") {
  TEST_CASE("every code has its errno for operations on names") {
    REQUIRE(name_errnos.size() == static_cast<std::size_t>(ErrorCode::io) + 1);
    for (const auto& [code, number] : name_errnos) {
      const auto name = error_code_name(code);  // clang 14 captures no structured binding
      INFO("code " << name);
      CHECK(errno_of(Error{code, "it failed"}) == number);
    }
  }

  TEST_CASE("every code has its errno for reads, where damage and absence are EIO") {
    REQUIRE(read_errnos.size() == static_cast<std::size_t>(ErrorCode::io) + 1);
    for (const auto& [code, number] : read_errnos) {
      const auto name = error_code_name(code);  // clang 14 captures no structured binding
      INFO("code " << name);
      CHECK(read_errno_of(Error{code, "it failed"}) == number);
    }
  }

  TEST_CASE("the errno of the operating system wins for names") {
    for (const auto& entry : name_errnos) {
      CHECK(errno_of(with_errno(entry.first, ENOTEMPTY)) == ENOTEMPTY);
      CHECK(errno_of(with_errno(entry.first, EROFS)) == EROFS);
    }
  }

  TEST_CASE("an errno from below does not make a read say something else") {
    CHECK(read_errno_of(with_errno(ErrorCode::not_found, ENOENT)) == EIO);
    CHECK(read_errno_of(with_errno(ErrorCode::io, ENOSYS)) == EIO);
    CHECK(read_errno_of(with_errno(ErrorCode::io, EAGAIN)) == EIO);
  }

  TEST_CASE("ENOSYS and EAGAIN never leave, whatever the code") {
    for (const auto& entry : name_errnos) {
      CHECK(errno_of(with_errno(entry.first, ENOSYS)) == EIO);
      CHECK(errno_of(with_errno(entry.first, EAGAIN)) == EIO);
      CHECK(errno_of(with_errno(entry.first, EWOULDBLOCK)) == EIO);
    }
  }
}

}  // namespace
}  // namespace hfd::fuse
