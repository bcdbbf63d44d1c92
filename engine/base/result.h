// Passing failures up, and the few ways to make one.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "palmshed/error.h"

namespace palmshed {

/// An Error for a failed system call `op`; `context` (a path, an id) goes into the message. Codes:
/// OVERLOADED where the host or the process has run out of something, else UNKNOWN; the caller who
/// knows better says so with `code`.
Error SysError(std::string_view op, int sys_errno, std::string_view context = {});
Error SysError(ErrorCode code, std::string_view op, int sys_errno, std::string_view context = {});

/// `cause`, a failed system call, as the FS_ERROR that it is for the caller; what the host or the
/// process has run out of stays OVERLOADED.
Error FsError(const Error& cause, std::string_view context);

/// INVALID_OPTIONS naming `field`. `problem` completes the sentence "<field> ...".
Error InvalidOption(std::string_view field, std::string_view problem);

/// UNSUPPORTED: `control` cannot be enforced; `missing` says why, `remedy` how to get it.
Error Unsupported(std::string_view control, std::string_view missing, std::string_view remedy);

[[noreturn]] inline void Unreachable(const char* file, int line) {
  std::fprintf(stderr, "palmshed: unreachable code reached at %s:%d\n", file, line);
  std::abort();
}

}  // namespace palmshed

#define PALMSHED_CONCAT_(a, b) a##b
#define PALMSHED_CONCAT(a, b) PALMSHED_CONCAT_(a, b)

// PALMSHED_TRY(auto fd, sys::Open(...)): binds the value or returns the error to the caller.
#define PALMSHED_TRY(declaration, expression)                                      \
  auto PALMSHED_CONCAT(result_, __LINE__) = (expression);                          \
  if (!PALMSHED_CONCAT(result_, __LINE__)) {                                       \
    return std::unexpected(std::move(PALMSHED_CONCAT(result_, __LINE__).error())); \
  }                                                                                \
  declaration = *std::move(PALMSHED_CONCAT(result_, __LINE__))

// PALMSHED_TRY_VOID(sys::Mkdir(...)): as above for calls without a value.
#define PALMSHED_TRY_VOID(expression)                        \
  do {                                                       \
    if (auto try_result = (expression); !try_result) {       \
      return std::unexpected(std::move(try_result.error())); \
    }                                                        \
  } while (false)

// A programming error ends the process; never used on outside input.
#define PALMSHED_CHECK(condition)                                                         \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "palmshed: check failed: %s at %s:%d\n", #condition, __FILE__, \
                   __LINE__);                                                             \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

// For the end of a function that a complete switch has left already.
#define PALMSHED_UNREACHABLE() ::palmshed::Unreachable(__FILE__, __LINE__)
