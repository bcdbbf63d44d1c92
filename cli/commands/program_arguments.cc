#include "cli/commands/program_arguments.h"

#include <CLI/App.hpp>
#include <CLI/Option.hpp>
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace palmshed::cli {
namespace {

bool TakesValue(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0;
}

/// True when the value of the last option in `argument` is the next argument.
bool WantsNext(const CLI::App& app, std::string_view argument) {
  if (argument.starts_with("--")) {
    return !argument.contains('=') && TakesValue(app, std::string(argument));
  }
  // A cluster: flags, then perhaps an option with a value, which is the rest if there is any.
  for (std::size_t i = 1; i < argument.size(); ++i) {
    if (TakesValue(app, {'-', argument[i]})) return i + 1 == argument.size();
  }
  return false;
}

/// How many of the arguments are options of ours, values included.
std::size_t CountOptions(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::size_t i = 0;
  while (i < arguments.size()) {
    const std::string_view argument = arguments[i];
    if (argument == "--" || argument.size() < 2 || argument.front() != '-') break;
    i += WantsNext(app, argument) ? 2 : 1;
  }
  return std::min(i, arguments.size());
}

}  // namespace

ProgramArguments SplitProgram(const CLI::App& app, std::vector<std::string> arguments) {
  const auto options = static_cast<std::ptrdiff_t>(CountOptions(app, arguments));
  const auto end = arguments.begin() + options;
  const bool marked = end != arguments.end() && *end == "--";
  ProgramArguments split;
  split.program.assign(std::move_iterator(end + (marked ? 1 : 0)),
                       std::move_iterator(arguments.end()));
  arguments.erase(end, arguments.end());
  split.options = std::move(arguments);
  return split;
}

}  // namespace palmshed::cli
