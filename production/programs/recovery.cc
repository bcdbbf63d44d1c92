// One sandbox, in which a program is ended in every way there is: afterwards it is as good as new.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "must.h"
#include "palmshed/palmshed.h"

namespace {

using namespace palmshed;
using namespace palmshed::literals;

constexpr char kTakeMemory[] = "exec python3 -c 'x = bytearray(1 << 30); x[::4096] = x[::4096]'";
constexpr char kTakeProcesses[] = "i=0; while [ $i -lt 99 ]; do sleep 99 & i=$((i+1)); done";

/// A pipeline, a file, background work, and as many processes as it may have at least.
void ExpectUsable(Sandbox& sandbox, std::string_view after) {
  const ExecResult run = Must(sandbox.RunShell(
      "echo kept > f; (sleep 99 &) ; cat f | tr k K; for i in 1 2 3 4; do true & done; wait"));
  if (!run.ok() || run.out.bytes != "Kept\n") {
    std::cout << "not usable after " << after << ": " << ToString(run.termination.cause) << '\n';
    std::exit(EXIT_FAILURE);
  }
  std::cout << "usable after " << after << '\n';
}

void Expect(bool holds, std::string_view what) {
  if (holds) return;
  std::cout << "not ended by " << what << '\n';
  std::exit(EXIT_FAILURE);
}

}  // namespace

int main() {
  Engine engine = Must(Engine::Create());
  Sandbox sandbox = Must(engine.CreateSandbox({.memory = 64_MiB, .pids = 24}));

  Expect(
      Must(sandbox.RunShell("trap '' TERM; sleep 99", {.timeout = std::chrono::milliseconds(300)}))
          .timed_out(),
      "timeout");
  ExpectUsable(sandbox, "timeout");

  Expect(Must(sandbox.RunShell(kTakeMemory)).termination.cause == Cause::kMemory, "memory");
  ExpectUsable(sandbox, "memory");

  Expect(Must(sandbox.RunShell("kill -SEGV $$")).termination.signal == SIGSEGV, "signal");
  ExpectUsable(sandbox, "signal");

  Execution stubborn = Must(sandbox.StartShell("trap '' TERM; echo begun; sleep 99; sleep 99"));
  (void)Must(stubborn.WaitForOutput(Stream::kStdout, "begun", std::chrono::seconds(20)));
  Must(stubborn.Cancel());
  Expect(Must(stubborn.Wait()).status == Status::kCancelled, "cancel");
  ExpectUsable(sandbox, "cancel");

  Expect(!Must(sandbox.RunShell(kTakeProcesses, {.timeout = std::chrono::seconds(20)})).ok(),
         "processes");
  ExpectUsable(sandbox, "processes");
}
