// SPDX-License-Identifier: Apache-2.0
// Result<T> and Error: how every hfdeltafs function that can fail at run time says so.
// Used by all layers and by users of the library. Never throws; never holds an errno as its meaning
// (os_errno is kept for the log and for the errno mapping of the kernel adapter only).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hfd {

/// What kind of failure it was; callers branch on this, people read the message.
enum class ErrorCode {
  not_found,         ///< no such path, ref, version or object
  invalid_argument,  ///< the caller asked for something impossible (usage)
  already_exists,    ///< put-if-absent lost, or a name is taken
  corrupt,           ///< bytes are not what their hash or format says
  unavailable,       ///< a remote did not answer within its deadline
  permission,        ///< not allowed, here or at the remote
  no_space,          ///< disk, quota or cap is full
  read_only,         ///< a write to something that takes none
  stale,             ///< the thing moved on since it was looked at
  busy,              ///< somebody else holds it
  incomplete,        ///< held back: a set of files that is not whole yet
  conflict,          ///< two writers, one place; both are kept
  left_in_staging,   ///< data is safe locally but not on the remote
  unsupported,       ///< a feature that this program does not have
  io,                ///< the operating system failed; see os_errno
};

/// The snake_case name of a code, as it appears in JSON.
constexpr std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::already_exists: return "already_exists";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::permission: return "permission";
    case ErrorCode::no_space: return "no_space";
    case ErrorCode::read_only: return "read_only";
    case ErrorCode::stale: return "stale";
    case ErrorCode::busy: return "busy";
    case ErrorCode::incomplete: return "incomplete";
    case ErrorCode::conflict: return "conflict";
    case ErrorCode::left_in_staging: return "left_in_staging";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::io: return "io";
  }
  return "io";
}

/// One failure. `object` names the thing it happened to (a path, an object id, a URI), `hint` what
/// the user can do; both may be empty. They make up the one line that the command line prints:
/// `hfdeltafs: WHAT: OBJECT: WHY; what to do`.
struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::io;
  std::string message;
  std::string object = {};
  std::string hint = {};
  int os_errno = 0;

  /// The same error with "what we were doing" put before the message.
  Error in(std::string_view doing) && {
    message = std::string(doing) + ": " + message;
    return std::move(*this);
  }
  /// The same error naming its object, unless a deeper layer named a more precise one.
  Error on(std::string_view what) && {
    if (object.empty()) {
      object = what;
    }
    return std::move(*this);
  }
  Error with_hint(std::string_view text) && {
    hint = text;
    return std::move(*this);
  }
};

/// A value or an Error. The type is nodiscard: dropping one is a build error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}        // NOLINT(google-explicit-constructor): `return value;` is the point
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}    // NOLINT(google-explicit-constructor): `return Error{…};` likewise

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// Precondition: ok(). A violation ends the program: it is our own mistake.
  T& value() & { return *checked(std::get_if<0>(&state_)); }
  const T& value() const& { return *checked(std::get_if<0>(&state_)); }
  T&& value() && { return std::move(*checked(std::get_if<0>(&state_))); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Precondition: !ok().
  Error& error() & { return *checked(std::get_if<1>(&state_)); }
  const Error& error() const& { return *checked(std::get_if<1>(&state_)); }
  Error&& error() && { return std::move(*checked(std::get_if<1>(&state_))); }

  Result in(std::string_view doing) && {
    if (ok()) {
      return std::move(*this);
    }
    return std::move(*this).error().in(doing);
  }
  Result on(std::string_view what) && {
    if (ok()) {
      return std::move(*this);
    }
    return std::move(*this).error().on(what);
  }

 private:
  template <class P>
  static P* checked(P* pointer) {
    if (pointer == nullptr) {
      std::fputs("hfdeltafs: Result read the wrong way round\n", stderr);
      std::abort();
    }
    return pointer;
  }
  std::variant<T, Error> state_;
};

/// Success without a value.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor): `return Error{…};` is the point

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  Error& error() & { return *checked(); }
  const Error& error() const& { return *const_cast<Result*>(this)->checked(); }  // NOLINT(cppcoreguidelines-pro-type-const-cast): only to share the check
  Error&& error() && { return std::move(*checked()); }

  Result in(std::string_view doing) && {
    if (ok()) {
      return {};
    }
    return std::move(*this).error().in(doing);
  }
  Result on(std::string_view what) && {
    if (ok()) {
      return {};
    }
    return std::move(*this).error().on(what);
  }

 private:
  Error* checked() {
    if (!error_) {
      std::fputs("hfdeltafs: Result has no error\n", stderr);
      std::abort();
    }
    return &*error_;
  }
  std::optional<Error> error_;
};

}  // namespace hfd

#define HFD_CONCAT_INNER(a, b) a##b
#define HFD_CONCAT(a, b) HFD_CONCAT_INNER(a, b)
#define HFD_TRY_INNER(temporary, declaration, expression) \
  auto temporary = (expression);                          \
  if (!temporary.ok()) {                                  \
    return std::move(temporary).error();                  \
  }                                                       \
  declaration = std::move(temporary).value()  // NOLINT(bugprone-macro-parentheses): a declaration takes none

/// `HFD_TRY(auto x, f());` binds x to the value of f() or returns its error. Must stand in a braced block.
#define HFD_TRY(declaration, expression) \
  HFD_TRY_INNER(HFD_CONCAT(hfd_try_, __LINE__), declaration, expression)

/// `HFD_TRY_VOID(f());` returns the error of f(), if any.
#define HFD_TRY_VOID(expression)                                    \
  do {                                                              \
    if (auto hfd_try_void = (expression); !hfd_try_void.ok()) {     \
      return std::move(hfd_try_void).error();                       \
    }                                                               \
  } while (false)
