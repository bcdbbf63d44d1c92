// Sandboxes one after another, in a process that stays.
//
// Usage: soak
// For each line N on standard input it makes N rounds, and says how many of them failed. In between
// nothing is under way, so that what the process holds can be looked at.
#include <expected>
#include <iostream>

#include "must.h"
#include "palmshed/palmshed.h"

namespace {

using namespace palmshed;

Result<bool> Round(Engine& engine) {
  Result<Sandbox> sandbox = engine.CreateSandbox({.pids = 16});
  if (!sandbox) return std::unexpected(sandbox.error());
  if (auto written = sandbox->WriteFile("f", "soaked\n"); !written) {
    return std::unexpected(written.error());
  }
  const Result<ExecResult> run = sandbox->Run({"cat", "f"});
  if (!run) return std::unexpected(run.error());
  if (auto gone = sandbox->Destroy(); !gone) return std::unexpected(gone.error());
  return run->ok() && run->out.bytes == "soaked\n";
}

/// Says why, once for each that is an error.
bool Succeeds(Engine& engine) {
  const Result<bool> right = Round(engine);
  if (!right) std::cerr << ToString(right.error().code) << ": " << right.error().message << '\n';
  return right.value_or(false);
}

}  // namespace

int main() {
  Engine engine = Must(Engine::Create());
  for (long rounds = 0; std::cin >> rounds;) {
    long failed = 0;
    for (long i = 0; i < rounds; ++i) failed += Succeeds(engine) ? 0 : 1;
    std::cout << failed << std::endl;
  }
}
