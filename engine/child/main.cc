// palmshed-init: the engine's helper program. Theory of operation: wire.h has the messages, roles.h
// the three processes. stage (host's user namespace) -> launcher (PID 1 of a user and pid namespace
// of its own) -> sandbox (PID 1 of each sandbox) -> workloads. Each dies with the one before it. A
// direct sandbox is the child of the engine's thread.
#include "child/roles.h"

namespace {

bool IsWord(const char* text, const char* word) {
  while (*text != '\0' && *text == *word) {
    ++text;
    ++word;
  }
  return *text == *word;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const role = argc > 1 ? argv[1] : "";
  if (IsWord(role, "stage") && argc == 5) palmshed::child::RunStage(argv[2], argv[3], argv[4]);
  if (IsWord(role, "launcher")) palmshed::child::RunLauncher();
  if (IsWord(role, "sandbox")) palmshed::child::RunSandbox();
  if (IsWord(role, "direct") && argc == 3) {
    palmshed::child::RunDirectSandbox(argv[2]);
  }
  if (IsWord(role, "probe")) palmshed::child::RunProbe(argc - 2, argv + 2);
  return 2;
}
