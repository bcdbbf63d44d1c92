// Sandboxes one after another for a while, in a process that stays.
//
// Usage: soak SECONDS
// Prints a line each second: rounds so far, anonymous memory in KiB, descriptors, threads.
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "must.h"
#include "palmshed/palmshed.h"

namespace {

using namespace palmshed;
using Clock = std::chrono::steady_clock;

std::string StatusOf(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::to_string(std::stoul(line.substr(key.size() + 1)));
  }
  return "0";
}

std::ptrdiff_t Descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

void Round(Engine& engine) {
  Sandbox sandbox = Must(engine.CreateSandbox({.pids = 16}));
  Must(sandbox.WriteFile("f", "soaked\n"));
  const ExecResult run = Must(sandbox.Run({"cat", "f"}));
  if (run.out.bytes != "soaked\n") std::exit(EXIT_FAILURE);
  Must(sandbox.Destroy());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Engine engine = Must(Engine::Create());
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::seconds(std::atoi(argv[1]));
  auto next_line = begin + std::chrono::seconds(1);
  long rounds = 0;
  for (auto now = begin; now < end; now = Clock::now()) {
    Round(engine);
    ++rounds;
    if (now < next_line) continue;
    next_line += std::chrono::seconds(1);
    std::cout << rounds << ' ' << StatusOf("RssAnon") << ' ' << Descriptors() << ' '
              << StatusOf("Threads") << std::endl;
  }
}
