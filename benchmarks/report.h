// Tables of latency and throughput for people; the same as figures for programs.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/figure.h"
#include "benchmarks/machine.h"
#include "benchmarks/peers.h"
#include "benchmarks/schedule.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {

/// What a table says about one variant.
struct Row {
  std::string name;
  std::string floor;
  int samples = 0;
  Micros p10{};  ///< Hardly disturbed by others; what to look at on a busy machine.
  Micros median{};
  Micros p95{};
  Micros over_floor{};                                    ///< Median minus the floor's.
  Ratio to_floor;                                         ///< V
  std::vector<std::pair<std::string, Ratio>> to_peers{};  ///< Of those that are present.
};

/// Null where the peer is absent.
const Ratio* ToPeer(const Row& row, const std::string& peer);

/// Runs of something that is not ours, which failed.
struct Failed {
  std::string name;
  std::string words;  ///< How often, what then, and why.
};

struct LatencyTable {
  std::chrono::milliseconds gap{};
  std::vector<Row> rows{};
  std::vector<Failed> failures{};
  std::vector<std::string> absent{};  ///< Variants that this host cannot run.
};

struct ThroughputRow {
  std::string name;
  int workers = 0;
  double runs_a_second = 0;
  double to_floor = 0;  ///< Divided by the floor's with as many workers.
};

/// `peers` that have no series, or none that lasted, are absent.
LatencyTable Summarize(std::chrono::milliseconds gap, std::span<const Series> series,
                       std::span<const Peer> peers, Random& random);

void Print(const Machine& machine);
/// The machine, and what V, B and the peers stand for.
void PrintHead(const Machine& machine, std::span<const Peer> peers);
void Print(const LatencyTable& table);
void Print(std::span<const ThroughputRow> rows);

std::vector<Figure> ToFigures(const LatencyTable& table);
std::vector<Figure> ToFigures(std::span<const ThroughputRow> rows);

}  // namespace palmshed::benchmarks
