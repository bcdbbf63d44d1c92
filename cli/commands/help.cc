#include "cli/commands/help.h"

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/verb.h"
#include "cli/output/exit_code.h"
#include "cli/output/note.h"
#include "cli/reference/help_text.h"

namespace palmshed::cli {
namespace {

ExitCode Explain(const std::string& topic) {
  if (topic.empty()) return Print(HelpText()) ? ExitCode::kOk : ExitCode::kFailed;
  if (const Verb* verb = FindVerb(topic)) {
    return Print(HelpText(*verb)) ? ExitCode::kOk : ExitCode::kFailed;
  }
  Note("no such command: '" + topic + "'; see 'palmshed --help'");
  return ExitCode::kFailed;
}

}  // namespace

Action DeclareHelp(CLI::App& app) {
  // Shared with the operand, which is written into it while the arguments are parsed.
  const auto topic = std::make_shared<std::string>();
  app.add_option("COMMAND", *topic, "The command to explain.");
  return [topic](const std::vector<std::string>&) { return Explain(*topic); };
}

}  // namespace palmshed::cli
