#include "cli/values/flag_error.h"

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "palmshed/error.h"

namespace palmshed::cli {

Error FlagError(std::string_view flag, std::string_view text, std::string_view problem) {
  return {.code = ErrorCode::kInvalidOptions,
          .message = fmt::format("{} '{}': {}", flag, text, problem),
          .field = std::string(flag)};
}

}  // namespace palmshed::cli
