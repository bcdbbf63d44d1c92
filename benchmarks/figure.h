// The one form of everything that is measured, for files and pages.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/machine.h"
#include "benchmarks/peers.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {

/// A median of some samples, at one point of an axis.
struct Figure {
  std::string measure{};  ///< What belongs on one page together: "latency".
  std::string name{};     ///< The variant: "exec".
  std::string axis{};     ///< What `at` counts; empty where there is one point only.
  double at = 0;
  std::string unit{};  ///< Of the three below: "us", "KiB", "MiB/s", "runs/s", or "" for a number.
  double low = 0;      ///< The 10th percentile.
  double median = 0;
  double high = 0;  ///< The 95th percentile.
  int samples = 1;
  std::vector<std::pair<std::string, Ratio>> ratios{};  ///< To other variants of the same run.
  std::string note{};
};

/// What is the same for all figures of a series.
struct Heading {
  std::string measure;
  std::string axis;
  std::string unit;
};

/// One without a spread.
Figure Single(const Heading& heading, const std::string& name, double at, double value);
/// Precondition: `samples` is not empty.
Figure Spread(const Heading& heading, const std::string& name, double at,
              const std::vector<double>& samples);

void Print(std::span<const Figure> figures);
/// {machine, peers, figures}. Ends the benchmark when the file cannot be written.
void WriteJson(const Machine& machine, std::span<const Peer> peers, std::span<const Figure> figures,
               const std::string& path);

}  // namespace palmshed::benchmarks
