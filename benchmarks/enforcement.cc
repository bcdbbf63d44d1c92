// How long after a limit was crossed the program is dead and its end reported.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ratio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/subject.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, as palmshed_load has it.

constexpr std::chrono::milliseconds kTimeout{50};
constexpr std::chrono::milliseconds kCpuTime{100};
constexpr std::chrono::seconds kPatience{30};

/// What palmshed_load writes.
struct Record {
  std::int64_t nanoseconds;
  std::int64_t used;
};

struct Crossing {
  std::string name;
  Cause cause;
  std::int64_t limit;  ///< As a record has it.
  SandboxOptions limits;
  std::vector<std::string> argv;
};

std::vector<Crossing> Crossings() {
  constexpr std::int64_t kMemory = std::int64_t{64} << 20;
  constexpr std::int64_t kDisk = std::int64_t{16} << 20;
  return {{.name = "time",
           .cause = Cause::kWallTimeout,
           .limit = 0,
           .limits = {.timeout = kTimeout},
           .argv = {"sleep", "1000"}},
          {.name = "CPU time",
           .cause = Cause::kCpuTime,
           .limit = std::chrono::nanoseconds(kCpuTime).count(),
           .limits = {.cpu_time_limit = kCpuTime, .timeout = kPatience},
           .argv = {kLoad, "cpu"}},
          {.name = "memory",
           .cause = Cause::kMemory,
           .limit = kMemory,
           .limits = {.memory = Bytes{kMemory}, .timeout = kPatience},
           .argv = {kLoad, "memory"}},
          {.name = "disk",
           .cause = Cause::kDisk,
           .limit = kDisk,
           .limits = {.disk_quota = Bytes{kDisk}, .timeout = kPatience},
           .argv = {kLoad, "disk"}}};
}

std::vector<Record> Records(const std::string& bytes) {
  std::vector<Record> records(bytes.size() / sizeof(Record));
  std::memcpy(records.data(), bytes.data(), records.size() * sizeof(Record));
  return records;
}

/// When the program's own count reached the limit. What the program itself does not see counts as
/// well, so that it may be stopped before: then it is the last that it could tell.
Clock::time_point CrossedAt(const Crossing& crossing, const ExecResult& result,
                            Clock::time_point start) {
  if (crossing.cause == Cause::kWallTimeout) return start + kTimeout;
  const auto records = Records(result.out.bytes);
  if (records.empty() || result.out.truncated) Die(crossing.name + ": the program told nothing");
  const auto over = std::ranges::find_if(
      records, [&](const Record& record) { return record.used >= crossing.limit; });
  const Record& crossed = over == records.end() ? records.back() : *over;
  return Clock::time_point(std::chrono::nanoseconds(crossed.nanoseconds));
}

double OverrunMillis(const Crossing& crossing, Sandbox& sandbox) {
  const auto start = Clock::now();
  const ExecResult result = Must(sandbox.Run(crossing.argv));
  const auto end = Clock::now();
  if (result.termination.cause != crossing.cause) {
    Die(fmt::format("{}: the program ended by {}", crossing.name,
                    ToString(result.termination.cause)));
  }
  return std::chrono::duration<double, std::milli>(end - CrossedAt(crossing, result, start))
      .count();
}

/// Those that this host enforces.
std::vector<Crossing> Enforced(Engine& engine) {
  std::vector<Crossing> enforced;
  for (const Crossing& crossing : Crossings()) {
    auto sandbox = engine.CreateSandbox(crossing.limits);
    if (!sandbox && sandbox.error().code == ErrorCode::kUnsupported) {
      fmt::print("{}: absent, {}\n", crossing.name, sandbox.error().message);
      continue;
    }
    Must(Must(std::move(sandbox)).Destroy());
    enforced.push_back(crossing);
  }
  return enforced;
}

/// A sandbox for each run: what one has put on disk counts for the next.
double OneRun(const Crossing& crossing, Engine& engine, std::chrono::milliseconds gap) {
  Sandbox sandbox = Must(engine.CreateSandbox(crossing.limits));
  PutLoad(sandbox);
  std::this_thread::sleep_for(gap);
  const double overrun = OverrunMillis(crossing, sandbox);
  Must(sandbox.Destroy());
  return overrun;
}

/// By turns, in an order drawn anew in each round. Long gaps get fewer rounds.
std::vector<Figure> AfterIdleness(std::chrono::milliseconds gap, Engine& engine,
                                  const std::vector<Crossing>& crossings,
                                  const Settings& settings) {
  const Heading heading{.measure = "limits", .axis = "ms idle", .unit = "ms"};
  const int rounds = gap.count() == 0 ? settings.rounds : std::max(3, settings.rounds / 3);
  std::vector<std::vector<double>> overruns(crossings.size());
  std::vector<std::size_t> order;
  order.reserve(crossings.size());
  for (std::size_t i = 0; i < crossings.size(); ++i) order.push_back(i);
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(order, settings.random);
    for (const std::size_t i : order) {
      overruns[i].push_back(OneRun(crossings[i], engine, gap));
    }
  }
  std::vector<Figure> figures;
  figures.reserve(crossings.size());
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    figures.push_back(
        Spread(heading, crossings[i].name, static_cast<double>(gap.count()), overruns[i]));
  }
  return figures;
}

}  // namespace

std::vector<Figure> MeasureEnforcement(const Settings& settings) {
  Engine engine = Must(Engine::Create());
  const auto crossings = Enforced(engine);
  std::vector<Figure> figures;
  for (const int gap_ms : {0, 50, 1000}) {
    if (settings.small && gap_ms > 0) break;
    Append(figures, AfterIdleness(std::chrono::milliseconds(gap_ms), engine, crossings, settings));
  }
  return figures;
}

}  // namespace palmshed::benchmarks
