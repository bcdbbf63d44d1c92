// How fast output gets out: kept, streamed, and beside a bare loop that reads a pipe.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/footprint.h"
#include "benchmarks/schedule.h"
#include "benchmarks/statistics.h"
#include "benchmarks/subject.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr Bytes kTail{kMiB};
constexpr char kPipe[] = "a bare pipe";
// A write that is small is a system call for a few bytes: less of them take as long.
constexpr std::uint64_t kMostWrites = 65536;
constexpr std::uint64_t kMostTotal = 64 * kMiB;

struct Amount {
  std::uint64_t write;
  std::uint64_t total;
};

std::vector<std::string> Emitting(const std::string& program, const Amount& amount) {
  return {program, "emit", std::to_string(amount.write), std::to_string(amount.total)};
}

void ExpectTotal(std::uint64_t got, const Amount& amount) {
  if (got != amount.total) Die("output was lost: " + std::to_string(got) + " bytes came");
}

/// Starts the program without a sandbox and reads its output to the end.
void ReadPipe(std::vector<std::string> argv, const Amount& amount) {
  std::vector<char*> pointers;
  pointers.reserve(argv.size() + 1);
  for (std::string& argument : argv) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::array<int, 2> output{};
  if (::pipe2(output.data(), O_CLOEXEC) != 0) DieErrno("pipe2");
  posix_spawn_file_actions_t actions;
  (void)::posix_spawn_file_actions_init(&actions);
  (void)::posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  pid_t pid = 0;
  if (::posix_spawn(&pid, pointers[0], &actions, nullptr, pointers.data(), environ) != 0) {
    Die("posix_spawn of " + argv[0]);
  }
  (void)::posix_spawn_file_actions_destroy(&actions);
  (void)::close(output[1]);
  static std::array<char, std::size_t{64} << 10> buffer;
  std::uint64_t total = 0;
  for (ssize_t got = 0; (got = ::read(output[0], buffer.data(), buffer.size())) > 0;) {
    total += static_cast<std::uint64_t>(got);
  }
  (void)::close(output[0]);
  if (::waitpid(pid, nullptr, 0) != pid) DieErrno("waitpid");
  ExpectTotal(total, amount);
}

void Capture(Sandbox& sandbox, const Amount& amount, ExecOptions options) {
  const ExecResult result = Must(sandbox.Run(Emitting(kLoad, amount), std::move(options)));
  if (!result.ok()) Die("the program that writes failed");
  ExpectTotal(result.out.total, amount);
}

void StreamOut(Sandbox& sandbox, const Amount& amount) {
  std::uint64_t total = 0;  // The callback has returned for good before Run does.
  ExecOptions options{.max_output = kTail};
  options.on_output = [&total](Stream, std::span<const std::byte> bytes) { total += bytes.size(); };
  Capture(sandbox, amount, std::move(options));
  ExpectTotal(total, amount);
}

std::vector<Variant> Ways(Sandbox& sandbox, const Amount& amount) {
  const ExecOptions tail{.max_output = kTail};
  const ExecOptions all{.max_output = Bytes{amount.total}};
  return {{.name = kPipe,
           .floor = kPipe,
           .run = [amount] { ReadPipe(Emitting(LoadOutside(), amount), amount); }},
          {.name = "captured, 1 MiB kept",
           .floor = kPipe,
           .run = [&sandbox, amount, tail] { Capture(sandbox, amount, tail); }},
          {.name = "captured, all kept",
           .floor = kPipe,
           .run = [&sandbox, amount, all] { Capture(sandbox, amount, all); }},
          {.name = "streamed, 1 MiB kept", .floor = kPipe, .run = [&sandbox, amount] {
             StreamOut(sandbox, amount);
           }}};
}

/// Times into rates; ratios are of rates too, so that more is better in both.
std::vector<Figure> Rates(const Heading& heading, const Amount& amount,
                          std::span<const Series> series, Random& random) {
  const Series& floor = Find(series, kPipe);
  std::vector<Figure> figures;
  for (const Series& one : series) {
    std::vector<double> rates;
    rates.reserve(one.samples.size());
    for (const Micros sample : one.samples) {
      rates.push_back(static_cast<double>(amount.total) / static_cast<double>(kMiB) /
                      std::chrono::duration<double>(sample).count());
    }
    figures.push_back(Spread(heading, one.name, static_cast<double>(amount.write), rates));
    if (one.name == kPipe) continue;
    figures.back().ratios.emplace_back(kPipe, MedianRatio(floor.samples, one.samples, random));
  }
  return figures;
}

}  // namespace

std::vector<Figure> MeasureOutput(const Settings& settings) {
  const Heading heading{.measure = "output", .axis = "bytes a write", .unit = "MiB/s"};
  Engine engine = Must(Engine::Create());
  Sandbox sandbox = Must(engine.CreateSandbox({.max_output = Bytes{kMostTotal}}));
  PutLoad(sandbox);
  std::vector<Figure> figures;
  const std::uint64_t most = settings.small ? kMiB : kMostTotal;
  for (const std::uint64_t write : {64ULL, 1024ULL, 4096ULL, 65536ULL, 1048576ULL}) {
    const Amount amount{.write = write, .total = std::min(most, write * kMostWrites)};
    const auto variants = Ways(sandbox, amount);
    const auto series =
        Measure(variants, std::chrono::milliseconds(0), settings.rounds, settings.random);
    Append(figures, Rates(heading, amount, series, settings.random));
  }
  return figures;
}

std::vector<Figure> MeasureMuchOutput(const Settings& settings) {
  const Heading time{.measure = "growth", .axis = "MiB of output held", .unit = "us"};
  const Heading memory{.measure = "memory", .axis = "MiB of output held", .unit = "KiB"};
  constexpr std::uint64_t kMost = 100;
  Engine engine = Must(Engine::Create());
  Sandbox sandbox = Must(engine.CreateSandbox({.max_output = Bytes{kMost * kMiB}}));
  PutLoad(sandbox);
  const Footprint before = MeasureFootprint();
  std::vector<Figure> figures;
  for (const std::uint64_t mebibytes : {std::uint64_t{1}, std::uint64_t{10}, kMost}) {
    const Amount amount{.write = 65536, .total = mebibytes * kMiB};
    // Held while everything else is measured.
    const ExecResult result = Must(sandbox.Run(Emitting(kLoad, amount)));
    ExpectTotal(result.out.bytes.size(), amount);
    const auto at = static_cast<double>(mebibytes);
    figures.push_back(
        Single(memory, "engine, PSS", at, MeasureFootprint().engine.pss - before.engine.pss));
    Append(figures, CostsAt(time, at, engine, sandbox, settings));
  }
  return figures;
}

}  // namespace palmshed::benchmarks
