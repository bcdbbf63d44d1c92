// Writes a file into a sandbox, runs a program on it there, and reads back what it made.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "palmshed/palmshed.h"

namespace {

using palmshed::Engine;
using palmshed::Error;
using palmshed::ExecResult;
using palmshed::Result;
using palmshed::Sandbox;

constexpr std::string_view kProgram = R"(
words = open("words.txt").read().split()
open("longest.txt", "w").write(max(words, key=len))
print(len(words), "words")
)";

int Fail(const Error& error) {
  std::cerr << ToString(error.code) << ": " << error.message << '\n';
  if (!error.remedy.empty()) std::cerr << error.remedy << '\n';
  return EXIT_FAILURE;
}

/// Prints what the program said and how it ended. A program that ends badly is not an Error.
void Print(const ExecResult& result) {
  std::cout << result.out.Text() << result.err.Text();
  std::cout << ToString(result.termination.cause) << " with " << result.exit_code << '\n';
}

int Run(Sandbox& sandbox) {
  if (auto written = sandbox.WriteFile("words.txt", "a sandbox is a place to play"); !written) {
    return Fail(written.error());
  }
  if (auto written = sandbox.WriteFile("count.py", kProgram); !written) {
    return Fail(written.error());
  }
  auto result = sandbox.Run({"python3", "count.py"}, {.timeout = std::chrono::seconds(10)});
  if (!result) return Fail(result.error());
  Print(*result);
  auto longest = sandbox.ReadFile("longest.txt");
  if (!longest) return Fail(longest.error());
  std::cout << "longest: " << *longest << '\n';
  return result->ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main() {
  Result<Engine> engine = Engine::Create();
  if (!engine) return Fail(engine.error());
  Result<Sandbox> sandbox = engine->CreateSandbox({.network = palmshed::Network::kDisabled});
  if (!sandbox) return Fail(sandbox.error());
  return Run(*sandbox);
}
