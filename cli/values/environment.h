// Environment variables as `-e` takes them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {

/// Finds a variable of our own environment.
using LookUpVariable = std::function<std::optional<std::string>(const std::string& name)>;

/// Parses "NAME=VALUE" entries. "NAME" alone takes the value from our own environment and is left
/// out when there is none, as in Docker.
Result<Env> ParseEnv(const std::vector<std::string>& entries, const LookUpVariable& look_up);

/// getenv(3).
std::optional<std::string> OwnVariable(const std::string& name);

}  // namespace palmshed::cli
