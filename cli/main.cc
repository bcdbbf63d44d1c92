// The program `palmshed`. It runs sandboxes in its own process and needs no daemon.
#include <string>
#include <vector>

#include "cli/commands/dispatch.h"
#include "cli/output/exit_code.h"
#include "cli/process/stdio.h"

int main(int argc, char** argv) {
  using palmshed::cli::ExitCode;
  if (!palmshed::cli::OpenMissingStdio()) return static_cast<int>(ExitCode::kFailed);
  const auto code = palmshed::cli::Dispatch(
      argc > 0 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>());
  return static_cast<int>(code);
}
