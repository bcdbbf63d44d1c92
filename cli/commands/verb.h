// The shape of a verb: one file each declares its options, and what to do once they are parsed.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/exit_code.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace palmshed::cli {

/// Does what the verb stands for. Gets the program to run and its arguments, which only a verb with
/// Verb::takes_program is given.
using Action = std::function<ExitCode(std::vector<std::string> program)>;

/// A command line that is worth showing, and what it does.
struct Example {
  std::string_view command{};
  std::string_view explanation{};
};

/// A verb of the program. Help, manual page, completions and docs/cli are made from this and from
/// the options that `declare` adds.
struct Verb {
  std::string_view name{};
  std::string_view operands{};     ///< What follows the options in the usage line.
  std::string_view summary{};      ///< One line, without a full stop.
  std::string_view description{};  ///< Paragraphs, separated by empty lines.
  std::span<const Example> examples{};
  bool takes_program = false;  ///< What follows the options is a program and its arguments.
  Action (*declare)(CLI::App&) = nullptr;
};

/// Every verb, in the order in which the help lists them.
std::span<const Verb> Verbs();
/// Null when there is none of that name.
const Verb* FindVerb(std::string_view name);

}  // namespace palmshed::cli
