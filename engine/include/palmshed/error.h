// Why a call of this library did not do what it was asked. A workload that ends badly is not an
// error: it is an ExecResult whose termination says so.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "palmshed/export.h"

namespace palmshed {
inline namespace v1 {

/// The error codes of the specification (spec/schemas/error.schema.json). Each has a page in
/// docs/errors with meaning, cause and recovery.
enum class ErrorCode : std::uint8_t {
  kExecFailed,         ///< EXEC_FAILED: the program could not be started.
  kFsError,            ///< FS_ERROR: a file operation failed, or would have left the workspace.
  kInvalidBackend,     ///< INVALID_BACKEND: no backend of that name.
  kCpuExceeded,        ///< ERR_CPU_EXCEEDED
  kOomExceeded,        ///< ERR_OOM_EXCEEDED
  kDiskQuotaExceeded,  ///< ERR_DISK_QUOTA_EXCEEDED
  kTimeout,            ///< TIMEOUT: declared by the specification, never returned by this library.
  kUnknown,            ///< UNKNOWN
  kInvalidOptions,     ///< INVALID_OPTIONS: the request is wrong; `field` names where.
  kUnsupported,        ///< UNSUPPORTED: this host cannot enforce what was asked; see `remedy`.
  kNotFound,           ///< NOT_FOUND
  kConflict,           ///< CONFLICT
  kUnauthorized,       ///< UNAUTHORIZED
  kOverloaded,         ///< OVERLOADED: a limit of the host or the process was reached; try later.
  kBackendLost,        ///< BACKEND_LOST: the engine, its launcher or the sandbox is gone.
};

/// The code as the specification spells it, e.g. "INVALID_OPTIONS".
PALMSHED_EXPORT std::string_view ToString(ErrorCode code);

/// A failed call. `message` is a full sentence for people; the other members are for programs.
struct Error {
  ErrorCode code{};       ///< The specification's code.
  std::string message{};  ///< What happened, naming the field or path concerned.
  std::string field{};    ///< The option or argument at fault; empty when none is.
  std::string op{};       ///< The step or system call that failed; empty when none did.
  std::string remedy{};   ///< What the caller can do about it; empty when nothing is known.
  int sys_errno = 0;      ///< The kernel's errno; 0 when no system call failed.
  /// Codes of resources (ERR_...): the limit that the call met and what would have been in use.
  std::optional<std::uint64_t> limit{};
  std::optional<std::uint64_t> observed{};  ///< In the same unit: bytes, or ms of CPU time.
};

/// A value or the Error that prevented it. Must not be dropped.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

}  // namespace v1
}  // namespace palmshed
