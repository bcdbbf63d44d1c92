// What is executed: argv, where the program is looked for, and whether the kernel could take it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/json.h"

namespace palmshed::plan {

/// The request's args, or the shell form. Precondition: model::Validate has accepted the request.
Result<std::vector<std::string>> Argv(const ExecRequest& request);

/// What to try to execute, in order, as execvp(3) would with `search_path` as PATH, except that
/// empty entries do not stand for the working directory: a program is not found there by accident.
Result<std::vector<std::string>> Candidates(const std::string& program,
                                            std::string_view search_path);

/// INVALID_OPTIONS when execve(2) would answer E2BIG.
Result<void> CheckFits(std::span<const std::string> argv, std::span<const std::string> env);

}  // namespace palmshed::plan
