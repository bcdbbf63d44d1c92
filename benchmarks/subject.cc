#include "benchmarks/subject.h"

#include <chrono>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/peers.h"
#include "benchmarks/schedule.h"
#include "benchmarks/spawn.h"
#include "benchmarks/statistics.h"
#include "benchmarks/variants.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

std::vector<double> Counts(std::span<const Micros> samples) {
  std::vector<double> counts;
  counts.reserve(samples.size());
  for (const Micros sample : samples) counts.push_back(sample.count());
  return counts;
}

}  // namespace

std::vector<Figure> TimeFigures(const Heading& heading, double at,
                                std::span<const Variant> variants, const Settings& settings) {
  const auto all =
      Measure(variants, std::chrono::milliseconds(0), settings.rounds, settings.random);
  std::vector<Figure> figures;
  for (const Series& one : all) {
    figures.push_back(Spread(heading, one.name, at, Counts(one.samples)));
    if (one.name == one.floor) continue;
    figures.back().ratios.emplace_back(
        one.floor, MedianRatio(one.samples, Find(all, one.floor).samples, settings.random));
  }
  return figures;
}

std::vector<Figure> CostsAt(const Heading& heading, double at, Engine& engine, Sandbox& live,
                            const Settings& settings) {
  const Command floor({kProgram});
  std::unique_ptr<Sandbox> fresh;
  const auto create = [&] { fresh = std::make_unique<Sandbox>(Must(engine.CreateSandbox())); };
  const auto destroy = [&] { Must(fresh->Destroy()); };
  const std::vector<Variant> variants{
      {.name = kFloor, .floor = kFloor, .run = [&] { floor.Run(); }},
      {.name = kExec, .floor = kFloor, .run = [&] { MustRun(live, kProgram); }},
      {.name = kCreate, .floor = kFloor, .run = create, .finish = destroy},
      {.name = kDestroy, .floor = kFloor, .prepare = create, .run = destroy}};
  return TimeFigures(heading, at, variants, settings);
}

void Append(std::vector<Figure>& figures, std::vector<Figure> more) {
  figures.insert(figures.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
}

std::string LoadOutside() {
  std::string path = Beside("palmshed_load");
  if (path.empty()) Die("palmshed_load is not beside this program");
  return path;
}

void PutLoad(Sandbox& sandbox) {
  Must(sandbox.UploadFile(LoadOutside(), kLoad));
  Must(sandbox.Chmod(kLoad, 0755));
}

}  // namespace palmshed::benchmarks
