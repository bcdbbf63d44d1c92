// What exec, create, destroy and memory are with more and more sandboxes alive.
#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/footprint.h"
#include "benchmarks/statistics.h"
#include "benchmarks/subject.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kCounts{1, 10, 100, 1000, 2000};
constexpr char kAxis[] = "live sandboxes";

/// The kernel's part is of the machine as a whole: over a few sandboxes it says nothing.
constexpr int kEnoughForKernel = 100;

std::vector<Figure> Memory(int count, const Footprint& before) {
  const Footprint now = MeasureFootprint();
  const Heading heading{.measure = "memory", .axis = kAxis, .unit = "KiB"};
  std::vector<Figure> figures;
  const auto add = [&](const char* name, double value) {
    figures.push_back(Single(heading, name, count, value));
  };
  add("engine, PSS", now.engine.pss - before.engine.pss);
  add("engine, page tables", now.engine.page_tables - before.engine.page_tables);
  add("each sandbox, PSS", now.sandboxes.pss / count);
  add("each sandbox, page tables", now.sandboxes.page_tables / count);
  if (count >= kEnoughForKernel) {
    add("each sandbox, kernel", (now.kernel - before.kernel) / count);
  }
  return figures;
}

/// Makes more of them; empty, or why there cannot be so many.
std::string GrowTo(int count, Engine& engine, std::vector<Sandbox>& live) {
  while (static_cast<int>(live.size()) < count) {
    auto sandbox = engine.CreateSandbox();
    if (!sandbox) return sandbox.error().message;
    live.push_back(*std::move(sandbox));
  }
  return {};
}

/// The last of the figures where a host does not let so many live.
Figure Most(const std::vector<Sandbox>& live, const std::string& why) {
  const Heading heading{.measure = "growth", .axis = "", .unit = ""};
  Figure most = Single(heading, "most live sandboxes", 0, static_cast<double>(live.size()));
  most.note = why;
  return most;
}

}  // namespace

std::vector<Figure> MeasureLive(const Settings& settings) {
  const Footprint before = MeasureFootprint();
  Engine engine = Must(Engine::Create());
  std::vector<Sandbox> live;
  std::vector<Figure> figures;
  for (const int count : kCounts) {
    if (count > settings.most) break;
    const auto start = Clock::now();
    const auto missing = static_cast<double>(count) - static_cast<double>(live.size());
    const std::string why = GrowTo(count, engine, live);
    const Micros taken = Clock::now() - start;
    if (!why.empty()) {
      figures.push_back(Most(live, why));
      break;
    }
    Append(figures, Memory(count, before));
    const Heading heading{.measure = "growth", .axis = kAxis, .unit = "us"};
    figures.push_back(Single(heading, "create, one after another", count, taken.count() / missing));
    Append(figures, CostsAt(heading, count, engine, live.front(), settings));
  }
  return figures;
}

}  // namespace palmshed::benchmarks
