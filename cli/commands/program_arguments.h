// Where our options end and the program to run begins.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}

namespace palmshed::cli {

/// A command line, cut in two.
struct ProgramArguments {
  std::vector<std::string> options{};
  std::vector<std::string> program{};  ///< argv of the program, byte for byte.
};

/// The program begins after `--`, or else with the first argument that is neither an option that
/// `app` has nor the value of one. Its arguments never reach the option parser, which gives some of
/// them a meaning ("[a,b]", "%%").
ProgramArguments SplitProgram(const CLI::App& app, std::vector<std::string> arguments);

}  // namespace palmshed::cli
