// Many sandboxes at once, and many executions at once in one: none sees anything of another.
//
// Usage: concurrency SANDBOXES EXECUTIONS
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "must.h"
#include "palmshed/palmshed.h"

namespace {

using namespace palmshed;

/// A hundred files of its own, and no other.
bool IsItsOwn(Engine& engine, int number) {
  Sandbox sandbox = Must(engine.CreateSandbox());
  const std::string tag = std::to_string(number);
  Must(sandbox.WriteFile("tag", tag));
  const ExecResult run = Must(sandbox.RunShell("seq 100 | xargs touch; ls | wc -l; cat tag"));
  Must(sandbox.Destroy());
  return run.out.bytes == "101\n" + tag;
}

bool SandboxesKeepApart(Engine& engine, int count) {
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&, i] { right += IsItsOwn(engine, i) ? 1 : 0; });
    }
  }
  return right == count;
}

bool ExecutionsKeepApart(Engine& engine, int count) {
  Sandbox sandbox = Must(engine.CreateSandbox());
  std::vector<Execution> running;
  for (int i = 0; i < count; ++i) {
    const std::string tag = std::to_string(i);
    running.push_back(Must(sandbox.StartShell("cat; echo $TAG >&2; exit $TAG",
                                              {.env = {{"TAG", tag}}, .stdin_bytes = tag})));
  }
  bool right = true;
  for (int i = 0; i < count; ++i) {
    const std::string tag = std::to_string(i);
    const ExecResult result = Must(running[static_cast<std::size_t>(i)].Wait());
    right =
        right && result.exit_code == i && result.out.bytes == tag && result.err.bytes == tag + "\n";
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int sandboxes = std::atoi(argv[1]), executions = std::atoi(argv[2]);
  Engine engine = Must(Engine::Create());
  if (!SandboxesKeepApart(engine, sandboxes) || !ExecutionsKeepApart(engine, executions)) {
    return EXIT_FAILURE;
  }
  std::cout << sandboxes << " sandboxes and " << executions << " executions kept apart\n";
}
