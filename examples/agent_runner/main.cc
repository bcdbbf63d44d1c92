// What a coding agent does, step by step: it runs the tests of a project while it reads along,
// changes a file, runs them again, and takes home what they made. Nothing that it runs can reach
// the host or the network, or outlive the sandbox.
//
// Usage: agent_runner PROJECT PATCHED-FILE REPLACEMENT ARTIFACT OUTPUT
//   PROJECT       directory with a run-tests script
//   PATCHED-FILE  file of the project that the agent rewrites with the content of REPLACEMENT
//   ARTIFACT      file that the tests make, copied to OUTPUT on the host
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "palmshed/palmshed.h"

namespace {

using palmshed::Engine;
using palmshed::Error;
using palmshed::ExecOptions;
using palmshed::ExecResult;
using palmshed::Result;
using palmshed::Sandbox;
using palmshed::Stream;
using namespace palmshed::literals;

int Fail(const Error& error) {
  std::cerr << ToString(error.code) << ": " << error.message << '\n';
  if (!error.remedy.empty()) std::cerr << error.remedy << '\n';
  return EXIT_FAILURE;
}

/// Output as it comes: an agent that reads along can stop what goes nowhere.
void Show(Stream stream, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  (stream == Stream::kStdout ? std::cout : std::cerr) << text << std::flush;
}

Result<ExecResult> RunTests(Sandbox& sandbox) {
  ExecOptions options{.timeout = std::chrono::minutes(5)};
  options.on_output = Show;
  auto result = sandbox.Run({"sh", "run-tests"}, options);
  if (result) {
    std::cout << "tests: " << ToString(result->termination.cause) << " with " << result->exit_code
              << '\n';
  }
  return result;
}

int Work(Sandbox& sandbox, std::span<char*> words) {
  const std::string_view patched = words[1], artifact = words[3], output = words[4];
  std::ifstream replacement(words[2], std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(replacement), {});
  if (auto done = sandbox.UploadFile(words[0], "."); !done) return Fail(done.error());
  auto before = RunTests(sandbox);
  if (!before) return Fail(before.error());
  if (auto done = sandbox.WriteFile(patched, content); !done) return Fail(done.error());
  auto after = RunTests(sandbox);
  if (!after) return Fail(after.error());
  if (auto done = sandbox.DownloadFile(artifact, output); !done) return Fail(done.error());
  std::cout << "kept " << artifact << '\n';
  return after->ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv + 1, static_cast<std::size_t>(argc - 1));
  if (words.size() != 5) {
    std::cerr << "usage: agent_runner PROJECT PATCHED-FILE REPLACEMENT ARTIFACT OUTPUT\n";
    return 2;
  }
  Result<Engine> engine = Engine::Create();
  if (!engine) return Fail(engine.error());
  // Held by the kernel where the host has the means; refused, naming what is missing, where not.
  Result<Sandbox> sandbox = engine->CreateSandbox({.cpu_time_limit = std::chrono::minutes(2),
                                                   .memory = 512_MiB,
                                                   .disk_quota = 256_MiB,
                                                   .pids = 128});
  if (!sandbox) return Fail(sandbox.error());
  return Work(*sandbox, words);
}
