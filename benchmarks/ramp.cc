// How many programs run at the same time, each in a sandbox of its own, and what stopped the ramp.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/statistics.h"
#include "benchmarks/subject.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWorkers = 16;
/// The host goes on working: with less memory left than this nothing more is started.
constexpr double kLeastFreeKib = 2.0 * 1024 * 1024;

double AvailableKib() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::strtod(line.c_str() + 13, nullptr);
  }
  return 0;
}

struct Running {
  Sandbox sandbox;
  Execution execution;
};

/// A sandbox with a program that runs, or why there is none.
Result<Running> StartOne(Engine& engine) {
  auto sandbox = engine.CreateSandbox();
  if (!sandbox) return std::unexpected(sandbox.error());
  auto execution = sandbox->Start({"cat"}, {.stdin_pipe = true});  // Ends when its sandbox does.
  if (!execution) return std::unexpected(execution.error());
  return Running{.sandbox = *std::move(sandbox), .execution = *std::move(execution)};
}

class Ramp {
 public:
  /// Starts some more, by all workers at the same time. False when something stood in the way.
  bool GrowTo(std::size_t count) {
    std::atomic<std::size_t> wanted = count - running_.size();
    std::vector<std::jthread> workers;
    workers.reserve(kWorkers);
    for (int i = 0; i < kWorkers; ++i) {
      workers.emplace_back([&] {
        while (TakeOne(wanted) && StartAnother()) {
        }
      });
    }
    workers.clear();
    return guardrail_.empty() && AllRun();
  }

  std::size_t count() const { return running_.size(); }
  const std::string& guardrail() const { return guardrail_; }

 private:
  static bool TakeOne(std::atomic<std::size_t>& wanted) {
    std::size_t left = wanted;
    while (left != 0 && !wanted.compare_exchange_weak(left, left - 1)) {
    }
    return left != 0;
  }

  bool StartAnother() {
    if (AvailableKib() < kLeastFreeKib)
      return Stop("the benchmark's own: 2 GiB of memory stay free");
    auto one = StartOne(engine_);
    if (!one) {
      const Error& error = one.error();
      return Stop(fmt::format("{}: {}", ToString(error.code), error.message));
    }
    const std::lock_guard lock(mutex_);
    running_.push_back(*std::move(one));
    return true;
  }

  bool AllRun() {
    const auto ended = std::ranges::count_if(
        running_, [](const Running& one) { return one.execution.result().has_value(); });
    return ended == 0 || Stop(fmt::format("{} programs had ended by themselves", ended));
  }

  bool Stop(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (guardrail_.empty()) guardrail_ = why;
    return false;
  }

  Engine engine_ = Must(Engine::Create());
  std::mutex mutex_;
  std::string guardrail_;
  std::vector<Running> running_;
};

}  // namespace

std::vector<Figure> MeasureRamp(const Settings& settings) {
  const Heading steps{.measure = "ramp", .axis = "programs at a time", .unit = "us"};
  Ramp ramp;
  std::vector<Figure> figures;
  const auto most = static_cast<std::size_t>(settings.most);
  for (std::size_t count = std::min<std::size_t>(kWorkers, most);;
       count = std::min(count * 2, most)) {
    const std::size_t before = ramp.count();
    const auto start = Clock::now();
    const bool grown = ramp.GrowTo(count);
    const Micros taken = Clock::now() - start;
    if (!grown) break;
    const auto added = static_cast<double>(count - before);
    figures.push_back(Single(steps, "create and start, for each", static_cast<double>(count),
                             taken.count() / added));
    if (count == most) break;
  }
  const Heading highest{.measure = "ramp", .axis = "", .unit = ""};
  figures.push_back(
      Single(highest, "most programs at a time", 0, static_cast<double>(ramp.count())));
  figures.back().note =
      "stopped by " + (ramp.guardrail().empty() ? std::string("the benchmark's own ceiling, --most")
                                                : ramp.guardrail());
  return figures;
}

}  // namespace palmshed::benchmarks
