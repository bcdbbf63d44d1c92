// What one create, one execution and one destroy are made of.
#include <algorithm>
#include <array>
#include <chrono>
#include <ratio>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/peers.h"
#include "benchmarks/spawn.h"
#include "benchmarks/subject.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::array kGaps{0, 50};

double InMicros(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

/// The durations of each step, in the order in which they first came.
class Steps {
 public:
  void Add(const std::string& of, std::span<const StepTime> steps) {
    for (const StepTime& step : steps) Of(of + "." + step.step).push_back(InMicros(step.duration));
  }
  std::vector<double>& Of(const std::string& name) {
    const auto found = std::ranges::find(all_, name, &Step::name);
    if (found != all_.end()) return found->samples;
    all_.push_back({.name = name});
    return all_.back().samples;
  }
  std::vector<Figure> ToFigures(const Heading& heading, double at) const {
    std::vector<Figure> figures;
    figures.reserve(all_.size());
    for (const Step& step : all_) {
      figures.push_back(Spread(heading, step.name, at, step.samples));
    }
    return figures;
  }

 private:
  struct Step {
    std::string name;
    std::vector<double> samples{};
  };
  std::vector<Step> all_;
};

/// `run`, after so much idleness; how long it took, as it is seen from outside.
template <class Run>
void Time(std::vector<double>& samples, milliseconds gap, const Run& run) {
  std::this_thread::sleep_for(gap);
  const auto start = Clock::now();
  run();
  samples.push_back(InMicros(Clock::now() - start));
}

void LiveOnce(Engine& engine, Sandbox& live, const Command& floor, milliseconds gap, Steps& steps) {
  Time(steps.Of(kFloor), gap, [&] { floor.Run(); });
  std::vector<Sandbox> fresh;
  Time(steps.Of(kCreate), gap, [&] { fresh.push_back(Must(engine.CreateSandbox())); });
  steps.Add(kCreate, fresh.front().timings().create);
  ExecResult result;
  Time(steps.Of(kExec), gap, [&] { result = Must(live.Run({kProgram}, {.timings = true})); });
  if (!result.ok()) Die("a program in a sandbox ended otherwise than it should");
  steps.Add(kExec, result.timings);
  Time(steps.Of(kDestroy), gap, [&] { Must(fresh.front().Destroy()); });
  steps.Add(kDestroy, fresh.front().timings().destroy);
}

}  // namespace

std::vector<Figure> MeasureSteps(const Settings& settings) {
  Engine engine = Must(Engine::Create());
  Sandbox live = Must(engine.CreateSandbox());
  const Command floor({kProgram});
  const Heading heading{.measure = "steps", .axis = "ms idle", .unit = "us"};
  std::vector<Figure> figures;
  for (const int gap : kGaps) {
    Steps warm;
    LiveOnce(engine, live, floor, milliseconds(0), warm);
    Steps steps;
    for (int round = 0; round < settings.rounds; ++round) {
      LiveOnce(engine, live, floor, milliseconds(gap), steps);
    }
    Append(figures, steps.ToFigures(heading, gap));
  }
  return figures;
}

}  // namespace palmshed::benchmarks
