#include "cli/values/environment.h"

#include <cstdlib>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/values/flag_error.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {

Result<Env> ParseEnv(const std::vector<std::string>& entries, const LookUpVariable& look_up) {
  Env env;
  for (const std::string& entry : entries) {
    const std::size_t equals = entry.find('=');
    std::string name = entry.substr(0, equals);
    if (name.empty()) {
      return std::unexpected(FlagError("--env", entry, "needs a name (NAME=VALUE or NAME)"));
    }
    if (equals != std::string::npos) {
      env.emplace_back(std::move(name), entry.substr(equals + 1));
    } else if (auto value = look_up(name)) {
      env.emplace_back(std::move(name), *std::move(value));
    }
  }
  return env;
}

std::optional<std::string> OwnVariable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace palmshed::cli
