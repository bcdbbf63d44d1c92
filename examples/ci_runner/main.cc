// Runs the job of a repository and keeps what it made: the log as it comes, the exit code as its
// own, and the artifact also of a job that failed.
//
// Usage: ci_runner REPOSITORY ARTIFACT OUTPUT COMMAND...
//   REPOSITORY  directory that is copied into the sandbox
//   ARTIFACT    file that the job may make, copied to OUTPUT on the host
// Exit code: that of the job; 124 at the time limit, 137 where a limit of resources ended it, 127
// when its command could not be started, 125 when there was no sandbox to run it in.
#include <chrono>
#include <cstddef>
#include <iostream>
#include <span>
#include <string_view>

#include "palmshed/palmshed.h"

namespace {

using palmshed::Cause;
using palmshed::Engine;
using palmshed::Error;
using palmshed::ExecOptions;
using palmshed::ExecResult;
using palmshed::Result;
using palmshed::Sandbox;
using palmshed::Stream;
using namespace palmshed::literals;

constexpr int kNoSandbox = 125;
constexpr int kTimedOut = 124;
constexpr int kNotStarted = 127;
constexpr int kOverALimit = 137;

int Fail(const Error& error) {
  std::cerr << ToString(error.code) << ": " << error.message << '\n';
  if (!error.remedy.empty()) std::cerr << error.remedy << '\n';
  return kNoSandbox;
}

void Log(Stream, std::span<const std::byte> bytes) {
  std::cout << std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
            << std::flush;
}

int CodeOf(const ExecResult& result) {
  if (result.timed_out()) return kTimedOut;
  if (result.termination.cause == Cause::kStartupFailed) return kNotStarted;
  return result.exit_code < 0 ? kOverALimit : result.exit_code;
}

/// That there is none is the job's business; anything else is not.
Result<void> Keep(const Sandbox& sandbox, std::string_view artifact, std::string_view output) {
  if (auto there = sandbox.Stat(artifact); !there) {
    std::cout << "no artifact\n";
    return {};
  }
  return sandbox.DownloadFile(artifact, output);
}

int RunJob(Sandbox& sandbox, std::span<char*> words) {
  if (auto done = sandbox.UploadFile(words[0], "."); !done) return Fail(done.error());
  ExecOptions options{.timeout = std::chrono::minutes(10), .env = {{"CI", "true"}}};
  options.on_output = Log;
  auto result = sandbox.Run({words.begin() + 3, words.end()}, options);
  if (!result) return Fail(result.error());
  if (auto kept = Keep(sandbox, words[1], words[2]); !kept) return Fail(kept.error());
  std::cout << "job: " << ToString(result->termination.cause) << " with " << CodeOf(*result)
            << '\n';
  return CodeOf(*result);
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv + 1, static_cast<std::size_t>(argc - 1));
  if (words.size() < 4) {
    std::cerr << "usage: ci_runner REPOSITORY ARTIFACT OUTPUT COMMAND...\n";
    return kNoSandbox;
  }
  Result<Engine> engine = Engine::Create();
  if (!engine) return Fail(engine.error());
  Result<Sandbox> sandbox =
      engine->CreateSandbox({.memory = 1024_MiB, .disk_quota = 1024_MiB, .pids = 256});
  if (!sandbox) return Fail(sandbox.error());
  return RunJob(*sandbox, words);
}
