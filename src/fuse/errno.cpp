// SPDX-License-Identifier: Apache-2.0
#include "fuse/errno.hpp"

#include <cerrno>

namespace hfd::fuse {

int errno_of(const Error& error) {
  if (error.os_errno == ENOSYS || error.os_errno == EAGAIN) {
    return EIO;
  }
  if (error.os_errno > 0) {
    return error.os_errno;
  }
  switch (error.code) {
    case ErrorCode::not_found: return ENOENT;
    case ErrorCode::invalid_argument: return EINVAL;
    case ErrorCode::already_exists: return EEXIST;
    case ErrorCode::permission: return EACCES;
    case ErrorCode::no_space: return ENOSPC;
    case ErrorCode::read_only: return EROFS;
    case ErrorCode::stale: return ESTALE;
    case ErrorCode::busy: return EBUSY;
    case ErrorCode::unsupported: return EOPNOTSUPP;
    case ErrorCode::corrupt:
    case ErrorCode::unavailable:
    case ErrorCode::incomplete:
    case ErrorCode::conflict:
    case ErrorCode::left_in_staging:
    case ErrorCode::io: return EIO;
  }
  return EIO;
}

int read_errno_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::permission: return EACCES;
    case ErrorCode::no_space: return ENOSPC;
    case ErrorCode::invalid_argument: return EINVAL;
    case ErrorCode::not_found:
    case ErrorCode::already_exists:
    case ErrorCode::read_only:
    case ErrorCode::stale:
    case ErrorCode::busy:
    case ErrorCode::unsupported:
    case ErrorCode::corrupt:
    case ErrorCode::unavailable:
    case ErrorCode::incomplete:
    case ErrorCode::conflict:
    case ErrorCode::left_in_staging:
    case ErrorCode::io: return EIO;
  }
  return EIO;
}

}  // namespace hfd::fuse
