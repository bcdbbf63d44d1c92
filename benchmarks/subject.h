// The subjects of palmshed_measure: each gives figures about one matter, in a process of its own.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/figure.h"
#include "benchmarks/schedule.h"
#include "benchmarks/statistics.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {

struct Settings {
  int rounds = 30;
  int most = 2000;     ///< Sandboxes that live at the same time.
  bool small = false;  ///< Only sizes that take no time: does it work?
  Random& random;
};

std::vector<Figure> MeasureSteps(const Settings& settings);        // steps.cc
std::vector<Figure> MeasureLive(const Settings& settings);         // live.cc
std::vector<Figure> MeasureResident(const Settings& settings);     // surroundings.cc
std::vector<Figure> MeasureMounts(const Settings& settings);       // surroundings.cc
std::vector<Figure> MeasureFiles(const Settings& settings);        // tree.cc
std::vector<Figure> MeasureOutput(const Settings& settings);       // output.cc
std::vector<Figure> MeasureMuchOutput(const Settings& settings);   // output.cc
std::vector<Figure> MeasureEnforcement(const Settings& settings);  // enforcement.cc
std::vector<Figure> MeasureRamp(const Settings& settings);         // ramp.cc

/// Figures of the variants' samples, in us, with the ratio to each one's floor.
std::vector<Figure> TimeFigures(const Heading& heading, double at,
                                std::span<const Variant> variants, const Settings& settings);

/// V, and beside it exec in `live`, create and destroy: what each costs in the state of `at`.
std::vector<Figure> CostsAt(const Heading& heading, double at, Engine& engine, Sandbox& live,
                            const Settings& settings);

void Append(std::vector<Figure>& figures, std::vector<Figure> more);

/// A sandbox that has the program palmshed_load in its workspace, as kLoad.
inline constexpr char kLoad[] = "./load";
void PutLoad(Sandbox& sandbox);
/// The same program outside; ends the benchmark where it was not built.
std::string LoadOutside();

}  // namespace palmshed::benchmarks
