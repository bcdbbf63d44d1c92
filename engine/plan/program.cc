#include "plan/program.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/utf8.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "plan/plan.h"

namespace palmshed::plan {
namespace {

constexpr std::size_t kMaxNameBytes = 255;  // NAME_MAX.
constexpr std::size_t kMaxSearchEntries = 1000;

// execve(2): strings, their NULs and the pointers to them get a quarter of the stack's soft limit,
// which is 8 MiB in a sandbox. The kernel adds the path of the program and, for a script, up to
// five interpreters with one argument each; the reserve is for those.
constexpr std::size_t kExecSpace = (std::size_t{8} << 20) / 4;
constexpr std::size_t kExecReserve = 32 << 10;
constexpr std::size_t kMaxExecBytes = kExecSpace - kExecReserve;

std::size_t SpaceOf(std::span<const std::string> strings) {
  std::size_t space = 0;
  for (const std::string& text : strings) space += text.size() + 1 + sizeof(char*);
  return space;
}

Error TooLong(std::string_view field) {
  return InvalidOption(field, "must be at most " + std::to_string(kMaxCommandBytes) +
                                  " bytes long, which is the kernel's limit for one string; "
                                  "pass longer text on standard input or in a file");
}

bool IsTooLong(const std::string& text) { return text.size() > kMaxCommandBytes; }

}  // namespace

Result<std::vector<std::string>> Argv(const ExecRequest& request) {
  if (request.command.empty()) return request.args;
  if (!IsTooLong(request.command)) {
    return std::vector<std::string>{"/bin/sh", "-c", request.command};
  }
  return std::unexpected(InvalidOption(
      "command", "must be at most " + std::to_string(kMaxCommandBytes) +
                     " bytes long; write a longer one to a script file and run that"));
}

Result<std::vector<std::string>> Candidates(const std::string& program,
                                            std::string_view search_path) {
  // The kernel answers ENAMETOOLONG for a name this long, whichever directory it is looked for in.
  if (program.contains('/') || program.size() > kMaxNameBytes) return std::vector{program};
  std::vector<std::string> candidates;
  while (!search_path.empty()) {
    const std::size_t end = std::min(search_path.find(':'), search_path.size());
    if (end > 0) candidates.push_back(std::string(search_path.substr(0, end)) + "/" + program);
    search_path.remove_prefix(std::min(end + 1, search_path.size()));
    if (candidates.size() <= kMaxSearchEntries) continue;
    return std::unexpected(InvalidOption(
        "env.PATH", "must name at most " + std::to_string(kMaxSearchEntries) + " directories"));
  }
  // execve(2) answers ENOENT for an empty path, which is what a search of no directory comes to.
  if (candidates.empty()) candidates.emplace_back();
  return candidates;
}

Result<void> CheckFits(std::span<const std::string> argv, std::span<const std::string> env) {
  const auto arg = std::ranges::find_if(argv, IsTooLong);
  if (arg != argv.end()) {
    return std::unexpected(TooLong("args[" + std::to_string(arg - argv.begin()) + "]"));
  }
  const auto variable = std::ranges::find_if(env, IsTooLong);
  if (variable != env.end()) {
    const std::string_view name = std::string_view(*variable).substr(0, variable->find('='));
    return std::unexpected(TooLong("env." + model::Shown(name)));
  }
  const std::size_t args_space = SpaceOf(argv);
  const std::size_t env_space = SpaceOf(env);
  if (args_space + env_space <= kMaxExecBytes) return {};
  return std::unexpected(InvalidOption(args_space > env_space ? "args" : "env",
                                       "must be shorter: arguments and environment together take " +
                                           std::to_string(args_space + env_space) +
                                           " bytes, and the kernel passes on at most " +
                                           std::to_string(kMaxExecBytes)));
}

}  // namespace palmshed::plan
