// Tables for people, JSON for programs.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/machine.h"
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
  Micros over_floor{};             ///< Median minus the floor's.
  Ratio to_floor;                  ///< V
  std::optional<Ratio> to_peer{};  ///< B; absent where bubblewrap is.
};

struct LatencyTable {
  std::chrono::milliseconds gap{};
  std::vector<Row> rows;
};

struct ThroughputRow {
  std::string name;
  int workers = 0;
  double runs_a_second = 0;
  double to_floor = 0;  ///< Divided by the floor's with as many workers.
};

struct Report {
  Machine machine;
  std::string peer_command;  ///< Empty when bubblewrap is not installed.
  std::vector<LatencyTable> latency{};
  std::vector<ThroughputRow> throughput{};
};

LatencyTable Summarize(std::chrono::milliseconds gap, std::span<const Series> series,
                       Random& random);

void Print(const Machine& machine);
/// The machine, and what V and B stand for.
void PrintHead(const Report& report);
void Print(const LatencyTable& table);
void Print(std::span<const ThroughputRow> rows);
/// Ends the benchmark when the file cannot be written.
void WriteJson(const Report& report, const std::string& path);

}  // namespace palmshed::benchmarks
