// A pool of sandboxes that judges one submission after another, whatever became of the last one:
// after each kind of end the next submission, in the same sandbox, is judged as in a new one.
//
// Usage: reuse SANDBOXES
// Prints one line for each kind of end: how many sandboxes went on after it.
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "must.h"
#include "palmshed/palmshed.h"

namespace {

using namespace palmshed;
using namespace palmshed::literals;

constexpr std::chrono::seconds kLongest{60};

ExecResult RunPython(Sandbox& sandbox, std::string program, ExecOptions options = {}) {
  return Must(sandbox.Run({"python3", "-c", std::move(program)}, std::move(options)));
}

bool TimesOut(Sandbox& sandbox) {
  return Must(sandbox.Run({"sleep", "999"}, {.timeout = std::chrono::milliseconds(300)}))
             .termination.cause == Cause::kWallTimeout;
}

bool TakesTooMuchMemory(Sandbox& sandbox) {
  const ExecResult run = RunPython(
      sandbox, "x = bytearray(1 << 30); x[::4096] = x[::4096]; import signal; signal.pause()");
  return run.termination.cause == Cause::kMemory;
}

bool TakesTooMuchTime(Sandbox& sandbox) {
  const ExecResult run = Must(
      sandbox.RunShell("while :; do :; done", {.cpu_time_limit = std::chrono::milliseconds(200)}));
  return run.termination.cause == Cause::kCpuTime;
}

/// A bomb: each of its processes makes more until the kernel refuses, and then stays.
bool IsRefusedProcesses(Sandbox& sandbox) {
  const ExecResult run = RunPython(sandbox, R"(
import errno, os, signal
first = os.getpid()
try:
    while True: os.fork()
except OSError as error:
    if os.getpid() != first: signal.pause()
    print(errno.errorcode[error.errno]))");
  return run.exit_code == 0 && run.out.bytes == "EAGAIN\n";
}

/// It has begun, and does not go by itself.
bool IsCancelled(Sandbox& sandbox) {
  Execution stubborn =
      Must(sandbox.StartShell("trap '' TERM; echo begun; while :; do sleep 9; done"));
  (void)Must(stubborn.WaitForOutput(Stream::kStdout, "begun", kLongest));
  Must(stubborn.Cancel());
  return Must(stubborn.Wait()).termination.cause == Cause::kCancelled;
}

bool Crashes(Sandbox& sandbox) {
  return Must(sandbox.RunShell("kill -SEGV $$")).termination.signal == SIGSEGV;
}

struct End {
  std::string_view name;
  bool (*come_to)(Sandbox&);
};
constexpr std::array kEnds{
    End{"a timeout", TimesOut},
    End{"too much memory", TakesTooMuchMemory},
    End{"too much CPU time", TakesTooMuchTime},
    End{"a fork bomb", IsRefusedProcesses},
    End{"a cancel", IsCancelled},
    End{"a crash", Crashes},
};
/// How many sandboxes went on after each.
using Survived = std::array<std::atomic<int>, kEnds.size()>;

/// It has half of the memory and of the processes that there may be, sees nobody's process but
/// palmshed's, and adds a line to the file that all submissions to this sandbox share.
bool JudgesTheNext(Sandbox& sandbox, std::size_t number) {
  const ExecResult run = RunPython(sandbox, R"(
import os
held = bytearray(48 << 20)
held[::4096] = held[::4096]
begun = [os.fork() or os._exit(0) for _ in range(8)]
ended = [os.waitpid(pid, 0)[1] for pid in begun]
others = [pid for pid in os.listdir('/proc') if pid.isdigit() and int(pid) != os.getpid()]
others = [pid for pid in others if open(f'/proc/{pid}/comm').read() != 'palmshed-init\n']
print('judged', file=open('record', 'a'))
print(int(input()) * 2, ended == [0] * 8, len(others), len(open('record').readlines())))",
                                   {.stdin_bytes = "21\n"});
  const std::string wanted = "42 True 0 " + std::to_string(number) + "\n";
  if (run.ok() && run.out.bytes == wanted) return true;
  std::cerr << ToString(run.termination.cause) << ": " << run.out.bytes << run.err.bytes;
  return false;
}

/// Each sandbox of the pool begins with another kind of end, so that all happen side by side.
void Serve(Engine& engine, std::size_t first, Survived& survived) {
  Sandbox sandbox = Must(engine.CreateSandbox({.memory = 96_MiB, .timeout = kLongest, .pids = 16}));
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    const std::size_t at = (first + i) % kEnds.size();
    if (!kEnds[at].come_to(sandbox)) {
      std::cerr << kEnds[at].name << " was not its end\n";
    } else if (JudgesTheNext(sandbox, i + 1)) {
      ++survived[at];
    }
  }
  Must(sandbox.Destroy());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto sandboxes = static_cast<std::size_t>(std::atoi(argv[1]));
  Engine engine = Must(Engine::Create());
  Survived survived{};
  {
    std::vector<std::jthread> pool;
    for (std::size_t i = 0; i < sandboxes; ++i) {
      pool.emplace_back([&, i] { Serve(engine, i, survived); });
    }
  }
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    std::cout << survived[i] << " went on after " << kEnds[i].name << '\n';
  }
}
