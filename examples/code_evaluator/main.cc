// Judges programs that strangers handed in: each runs in a sandbox of its own, on the same input,
// within the same limits, a few at a time. What one of them does concerns none of the others.
//
// Usage: code_evaluator DIRECTORY INPUT EXPECTED AT-ONCE
//   DIRECTORY  with one Python program for each submission, NAME.py
//   INPUT      file that each reads from standard input
//   EXPECTED   file with what each must print
// Prints one line for each submission, sorted by name: NAME VERDICT.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"

namespace {

namespace fs = std::filesystem;
using palmshed::Cause;
using palmshed::Engine;
using palmshed::ExecResult;
using palmshed::Result;
using palmshed::Sandbox;
using palmshed::SandboxOptions;
using namespace palmshed::literals;

std::string ContentOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Task {
  std::string input;
  std::string expected;
};

/// The cause is what the kernel says, never what the program claims by its exit code.
std::string VerdictOn(const ExecResult& result, const Task& task) {
  switch (result.termination.cause) {
    case Cause::kWallTimeout:
    case Cause::kCpuTime:
      return "time limit exceeded";
    case Cause::kMemory:
      return "memory limit exceeded";
    case Cause::kDisk:
      return "disk quota exceeded";
    case Cause::kExited:
      if (result.exit_code != 0) return "runtime error";
      if (result.out.truncated || result.out.bytes != task.expected) return "wrong answer";
      return "accepted";
    default:
      return "runtime error";
  }
}

SandboxOptions Limits() {
  return {.cpu_time_limit = std::chrono::seconds(2),
          .memory = 64_MiB,
          .disk_quota = 16_MiB,
          .timeout = std::chrono::seconds(5),
          .pids = 16,
          .max_output = 64_KiB};
}

Result<ExecResult> Execute(Engine& engine, const fs::path& submission, const Task& task) {
  Result<Sandbox> sandbox = engine.CreateSandbox(Limits());
  if (!sandbox) return std::unexpected(sandbox.error());
  if (auto written = sandbox->WriteFile("main.py", ContentOf(submission)); !written) {
    return std::unexpected(written.error());
  }
  return sandbox->Run({"python3", "main.py"}, {.stdin_bytes = task.input});
}

std::string Judge(Engine& engine, const fs::path& submission, const Task& task) {
  const Result<ExecResult> result = Execute(engine, submission, task);
  if (result) return VerdictOn(*result, task);
  return std::string("not judged: ") + result.error().message;
}

std::vector<fs::path> SubmissionsIn(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".py") found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv + 1, static_cast<std::size_t>(argc - 1));
  const int at_once = words.size() == 4 ? std::atoi(words[3]) : 0;
  if (at_once < 1) {
    std::cerr << "usage: code_evaluator DIRECTORY INPUT EXPECTED AT-ONCE\n";
    return 2;
  }
  Result<Engine> engine = Engine::Create();
  if (!engine) {
    std::cerr << ToString(engine.error().code) << ": " << engine.error().message << '\n';
    return EXIT_FAILURE;
  }
  const std::vector<fs::path> submissions = SubmissionsIn(words[0]);
  const Task task{.input = ContentOf(words[1]), .expected = ContentOf(words[2])};
  std::vector<std::string> verdicts(submissions.size());
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> pool;
    for (int i = 0; i < at_once; ++i) {
      pool.emplace_back([&] {
        for (std::size_t mine; (mine = next++) < submissions.size();) {
          verdicts[mine] = Judge(*engine, submissions[mine], task);
        }
      });
    }
  }
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    std::cout << submissions[i].stem().string() << ' ' << verdicts[i] << '\n';
  }
  return EXIT_SUCCESS;
}
