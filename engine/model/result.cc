// What an outcome says beyond its members.
#include "palmshed/result.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/utf8.h"
#include "palmshed/error.h"

namespace palmshed {
inline namespace v1 {

std::string Captured::Text() const {
  if (!truncated) return bytes;
  const std::size_t cut = model::CutCharacter(bytes);
  std::string text = "[output truncated: showing last " + std::to_string(bytes.size() - cut) +
                     " of " + std::to_string(total) + " bytes]\n";
  return text.append(bytes, cut);
}

std::string_view ExecResult::error_code() const {
  switch (termination.cause) {
    case Cause::kCpuTime:
      return ToString(ErrorCode::kCpuExceeded);
    case Cause::kMemory:
      return ToString(ErrorCode::kOomExceeded);
    case Cause::kDisk:
      return ToString(ErrorCode::kDiskQuotaExceeded);
    case Cause::kStartupFailed:
      return ToString(ErrorCode::kExecFailed);
    case Cause::kBackendLost:
    case Cause::kInternal:
      return ToString(ErrorCode::kBackendLost);
    case Cause::kExited:
    case Cause::kSignaled:
    case Cause::kWallTimeout:
    case Cause::kPids:
    case Cause::kCancelled:
      return {};
  }
  PALMSHED_UNREACHABLE();
}

}  // namespace v1
}  // namespace palmshed
