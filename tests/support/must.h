// Results in tests: a call that has to work, and what to print when it did not.
#pragma once

#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/result.h"

namespace palmshed {
inline namespace v1 {

// GoogleTest finds these by the type's namespace.
inline void PrintTo(const Error& error, std::ostream* out) { *out << ToJson(error); }
inline void PrintTo(const ExecResult& result, std::ostream* out) {
  std::string text = ToJson(result);
  if (text.size() > 2000) text.resize(2000);
  *out << text;
}
inline void PrintTo(Status status, std::ostream* out) { *out << ToString(status); }
inline void PrintTo(Cause cause, std::ostream* out) { *out << ToString(cause); }
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << ToString(code); }

}  // namespace v1

namespace tests {

/// The value; without one the test ends here, failed, with the error.
template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(ToJson(result.error()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace tests
}  // namespace palmshed
