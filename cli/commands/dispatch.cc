#include "cli/commands/dispatch.h"

#include <fmt/core.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>  // IWYU pragma: keep, for the definitions behind CLI::App
#include <CLI/Error.hpp>
#include <CLI/Formatter.hpp>  // IWYU pragma: keep, as above
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/program_arguments.h"
#include "cli/commands/verb.h"
#include "cli/output/exit_code.h"
#include "cli/output/note.h"
#include "cli/reference/help_text.h"

namespace palmshed::cli {
namespace {

ExitCode ShowHelp(const Verb* verb) {
  return Print(verb != nullptr ? HelpText(*verb) : HelpText()) ? ExitCode::kOk : ExitCode::kFailed;
}

ExitCode RefuseUsage(std::string_view problem, std::string_view verb) {
  const std::string command = verb.empty() ? "palmshed" : fmt::format("palmshed {}", verb);
  Note(fmt::format("{}; see '{} --help'", problem, command));
  return ExitCode::kFailed;
}

/// "--name=" as "--name" and an empty value: CLI11 would take the next argument for the value.
std::vector<std::string> SplitEmptyValues(std::vector<std::string> options) {
  std::vector<std::string> split;
  for (std::string& option : options) {
    const bool empty_value = option.starts_with("--") && option.ends_with('=');
    if (empty_value) option.pop_back();
    split.push_back(std::move(option));
    if (empty_value) split.emplace_back();
  }
  return split;
}

ExitCode RunVerb(const Verb& verb, std::vector<std::string> arguments) {
  CLI::App app;
  app.set_help_flag();
  bool help = false;
  app.add_flag("-h,--help", help);
  const Action act = verb.declare(app);
  ProgramArguments split{.options = std::move(arguments)};
  if (verb.takes_program) split = SplitProgram(app, std::move(split.options));
  std::vector<std::string> options = SplitEmptyValues(std::move(split.options));
  std::ranges::reverse(options);  // CLI11 takes its arguments from the back.
  try {
    app.parse(std::move(options));
  } catch (const CLI::Error& problem) {
    if (help) return ShowHelp(&verb);
    return RefuseUsage(problem.what(), verb.name);
  }
  if (help) return ShowHelp(&verb);
  return act(std::move(split.program));
}

}  // namespace

ExitCode Dispatch(std::vector<std::string> arguments) {
  if (arguments.empty()) return RefuseUsage("no command given", "");
  std::string name = arguments.front();
  if (name == "-h" || name == "--help") return ShowHelp(nullptr);
  if (name == "-V" || name == "--version") name = "version";
  const Verb* verb = FindVerb(name);
  if (verb == nullptr) return RefuseUsage(fmt::format("no such command: '{}'", name), "");
  arguments.erase(arguments.begin());
  return RunVerb(*verb, std::move(arguments));
}

}  // namespace palmshed::cli
