#include "base/result.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "palmshed/error.h"

namespace palmshed {
namespace {

ErrorCode CodeFor(int sys_errno) {
  switch (sys_errno) {
    case EMFILE:
    case ENFILE:
    case EAGAIN:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EUSERS:
    case ETOOMANYREFS:  // Of descriptors on their way through sockets, unix(7).
      return ErrorCode::kOverloaded;
    default:
      return ErrorCode::kUnknown;
  }
}

}  // namespace

Error SysError(std::string_view op, int sys_errno, std::string_view context) {
  return SysError(CodeFor(sys_errno), op, sys_errno, context);
}

Error SysError(ErrorCode code, std::string_view op, int sys_errno, std::string_view context) {
  std::string message(op);
  if (!context.empty()) message.append(" ").append(context);
  message.append(": ").append(std::generic_category().message(sys_errno));
  return Error{.code = code, .message = message, .op = std::string(op), .sys_errno = sys_errno};
}

Error FsError(const Error& cause, std::string_view context) {
  const bool shortage = cause.code == ErrorCode::kOverloaded;
  return SysError(shortage ? cause.code : ErrorCode::kFsError, cause.op, cause.sys_errno, context);
}

Error InvalidOption(std::string_view field, std::string_view problem) {
  std::string message(field);
  message.append(" ").append(problem);
  return Error{.code = ErrorCode::kInvalidOptions, .message = message, .field = std::string(field)};
}

Error Unsupported(std::string_view control, std::string_view missing, std::string_view remedy) {
  std::string message(control);
  message.append(" cannot be enforced here: ").append(missing);
  return Error{.code = ErrorCode::kUnsupported,
               .message = message,
               .field = std::string(control),
               .remedy = std::string(remedy)};
}

}  // namespace palmshed
