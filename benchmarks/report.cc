#include "benchmarks/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/figure.h"
#include "benchmarks/machine.h"
#include "benchmarks/peers.h"
#include "benchmarks/schedule.h"
#include "benchmarks/spawn.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

std::string Interval(const Ratio& ratio) {
  return fmt::format("{:5.2f} ({:.2f}-{:.2f})", ratio.value, ratio.low, ratio.high);
}

Failed FailedOf(const Series& series, std::chrono::milliseconds gap) {
  const char* then = series.samples.empty() ? "given up" : "made again";
  return {.name = series.name,
          .words = fmt::format("{} failed after {} ms idle, {}: {}", series.failures, gap.count(),
                               then, series.failure)};
}

}  // namespace

const Ratio* ToPeer(const Row& row, const std::string& peer) {
  const auto found = std::ranges::find(row.to_peers, peer, &std::pair<std::string, Ratio>::first);
  return found == row.to_peers.end() ? nullptr : &found->second;
}

LatencyTable Summarize(std::chrono::milliseconds gap, std::span<const Series> series,
                       std::span<const Peer> peers, Random& random) {
  LatencyTable table{.gap = gap};
  for (const Series& one : series) {
    if (one.failures > 0) table.failures.push_back(FailedOf(one, gap));
    if (one.samples.empty()) continue;
    const Series& floor = Find(series, one.floor);
    Row row{.name = one.name,
            .floor = one.floor,
            .samples = static_cast<int>(one.samples.size()),
            .p10 = Quantile(one.samples, 0.1),
            .median = Median(one.samples),
            .p95 = Quantile(one.samples, 0.95),
            .over_floor = Median(one.samples) - Median(floor.samples),
            .to_floor = MedianRatio(one.samples, floor.samples, random)};
    // Peers run kProgram; who runs another program is compared with that alone.
    const bool same_program = one.floor == kFloor || one.floor == kExec;
    for (const Peer& peer : peers) {
      if (!same_program) break;
      const auto its = std::ranges::find(series, peer.name, &Series::name);
      if (its == series.end() || its->samples.empty()) continue;
      row.to_peers.emplace_back(peer.name, MedianRatio(one.samples, its->samples, random));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

void Print(const Machine& machine) {
  fmt::print("{}, {} cores, Linux {}, {}, as {}\n", machine.cpu, machine.cores, machine.kernel,
             machine.distribution, machine.user);
}

void PrintHead(const Machine& machine, std::span<const Peer> peers) {
  Print(machine);
  fmt::print("V: vfork and exec of {}, two pipes drained\n", kProgram);
  for (const Peer& peer : peers) {
    const std::string what =
        peer.command.empty() ? "absent, " + peer.absent : Command(peer.command).Text();
    fmt::print("{}{}: {}\n", peer.name, peer.name == kPeer ? " (B)" : "", what);
  }
  fmt::print("Ratios of medians, with 95 % intervals. noop is compared with its own floor.\n");
}

void Print(const LatencyTable& table) {
  fmt::print("\n{} ms idle before each run, n = {}\n", table.gap.count(),
             table.rows.empty() ? 0 : table.rows.front().samples);
  fmt::print("{:<21} {:>8} {:>10} {:>8} {:>9}  {:<18} {}\n", "", "p10 us", "median us", "p95 us",
             "V + us", "/ V", "/ B");
  for (const Row& row : table.rows) {
    const Ratio* to_peer = ToPeer(row, kPeer);
    fmt::print("{:<21} {:>8.0f} {:>10.0f} {:>8.0f} {:>+9.0f}  {:<18} {}\n", row.name,
               row.p10.count(), row.median.count(), row.p95.count(), row.over_floor.count(),
               Interval(row.to_floor), to_peer != nullptr ? Interval(*to_peer) : std::string("-"));
  }
  for (const auto& [name, words] : table.failures) fmt::print("{}: {}\n", name, words);
}

void Print(std::span<const ThroughputRow> rows) {
  fmt::print("\n{:<20} {:>8} {:>10} {:>8}\n", "runs a second", "workers", "", "/ V");
  for (const ThroughputRow& row : rows) {
    fmt::print("{:<20} {:>8} {:>10.0f} {:>8.2f}\n", row.name, row.workers, row.runs_a_second,
               row.to_floor);
  }
}

std::vector<Figure> ToFigures(const LatencyTable& table) {
  std::vector<Figure> figures;
  for (const Row& row : table.rows) {
    Figure figure{.measure = "latency",
                  .name = row.name,
                  .axis = "ms idle",
                  .at = static_cast<double>(table.gap.count()),
                  .unit = "us",
                  .low = row.p10.count(),
                  .median = row.median.count(),
                  .high = row.p95.count(),
                  .samples = row.samples,
                  .ratios = row.to_peers};
    figure.ratios.emplace(figure.ratios.begin(), row.floor, row.to_floor);
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::vector<Figure> ToFigures(std::span<const ThroughputRow> rows) {
  const Heading heading{.measure = "throughput", .axis = "workers", .unit = "runs/s"};
  std::vector<Figure> figures;
  for (const ThroughputRow& row : rows) {
    figures.push_back(Single(heading, row.name, row.workers, row.runs_a_second));
    const Ratio ratio{.value = row.to_floor, .low = row.to_floor, .high = row.to_floor};
    figures.back().ratios.emplace_back(kFloor, ratio);
  }
  return figures;
}

}  // namespace palmshed::benchmarks
