#include "cli/commands/completion.h"

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/verb.h"
#include "cli/output/exit_code.h"
#include "cli/output/note.h"
#include "cli/reference/completion.h"

namespace palmshed::cli {
namespace {

std::string Script(const std::string& shell) {
  if (shell == "zsh") return ZshCompletion();
  if (shell == "fish") return FishCompletion();
  return BashCompletion();
}

}  // namespace

Action DeclareCompletion(CLI::App& app) {
  // Shared with the operand, which is written into it while the arguments are parsed.
  const auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "The shell: bash, zsh or fish.")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}).description(""))
      ->type_name("bash|zsh|fish");
  return [shell](const std::vector<std::string>&) {
    return Print(Script(*shell)) ? ExitCode::kOk : ExitCode::kFailed;
  };
}

}  // namespace palmshed::cli
