// What the wrappers of system calls have in common. For base/sys*.cc alone.
#pragma once

#include <cerrno>
#include <expected>
#include <string_view>

#include "base/result.h"
#include "palmshed/error.h"

namespace palmshed::sys {

/// Calls until it was not interrupted; -1 with errno otherwise.
template <class Call>
auto NoEintr(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

/// As NoEintr, for a call without a value.
template <class Call>
Result<void> Do(std::string_view op, std::string_view context, Call call) {
  if (NoEintr(call) < 0) return std::unexpected(SysError(op, errno, context));
  return {};
}

}  // namespace palmshed::sys
