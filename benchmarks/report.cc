#include "benchmarks/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/machine.h"
#include "benchmarks/peers.h"
#include "benchmarks/schedule.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

namespace json = boost::json;

std::string Interval(const Ratio& ratio) {
  return fmt::format("{:5.2f} ({:.2f}-{:.2f})", ratio.value, ratio.low, ratio.high);
}

json::object ToJson(const Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.low}, {"high", ratio.high}};
}

json::object ToJson(const Row& row) {
  json::object object{{"name", row.name},
                      {"floor", row.floor},
                      {"samples", row.samples},
                      {"p10Us", row.p10.count()},
                      {"medianUs", row.median.count()},
                      {"p95Us", row.p95.count()},
                      {"overFloorUs", row.over_floor.count()},
                      {"toFloor", ToJson(row.to_floor)}};
  if (row.to_peer) object["toBubblewrap"] = ToJson(*row.to_peer);
  return object;
}

json::object ToJson(const LatencyTable& table) {
  json::array rows;
  for (const Row& row : table.rows) rows.push_back(ToJson(row));
  return {{"gapMs", table.gap.count()}, {"variants", std::move(rows)}};
}

json::object ToJson(const ThroughputRow& row) {
  return {{"name", row.name},
          {"workers", row.workers},
          {"runsPerSecond", row.runs_a_second},
          {"toFloor", row.to_floor}};
}

json::object ToJson(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"kernel", machine.kernel},
          {"distribution", machine.distribution},
          {"user", machine.user}};
}

}  // namespace

LatencyTable Summarize(std::chrono::milliseconds gap, std::span<const Series> series,
                       Random& random) {
  LatencyTable table{.gap = gap, .rows = {}};
  const auto peer = std::ranges::find(series, kPeer, &Series::name);
  for (const Series& one : series) {
    const Series& floor = Find(series, one.floor);
    Row row{.name = one.name,
            .floor = one.floor,
            .samples = static_cast<int>(one.samples.size()),
            .p10 = Quantile(one.samples, 0.1),
            .median = Median(one.samples),
            .p95 = Quantile(one.samples, 0.95),
            .over_floor = Median(one.samples) - Median(floor.samples),
            .to_floor = MedianRatio(one.samples, floor.samples, random)};
    if (peer != series.end()) row.to_peer = MedianRatio(one.samples, peer->samples, random);
    table.rows.push_back(std::move(row));
  }
  return table;
}

void Print(const Machine& machine) {
  fmt::print("{}, {} cores, Linux {}, {}, as {}\n", machine.cpu, machine.cores, machine.kernel,
             machine.distribution, machine.user);
}

void PrintHead(const Report& report) {
  Print(report.machine);
  fmt::print("V: vfork and exec of {}, two pipes drained\n", kProgram);
  if (report.peer_command.empty()) {
    fmt::print("B: absent, bubblewrap is not installed\n");
  } else {
    fmt::print("B: {}\n", report.peer_command);
  }
  fmt::print("Ratios of medians, with 95 % intervals. noop is compared with its own floor.\n");
}

void Print(const LatencyTable& table) {
  fmt::print("\n{} ms idle before each run, n = {}\n", table.gap.count(),
             table.rows.empty() ? 0 : table.rows.front().samples);
  fmt::print("{:<20} {:>8} {:>10} {:>8} {:>9}  {:<18} {}\n", "", "p10 us", "median us", "p95 us",
             "V + us", "/ V", "/ B");
  for (const Row& row : table.rows) {
    fmt::print("{:<20} {:>8.0f} {:>10.0f} {:>8.0f} {:>+9.0f}  {:<18} {}\n", row.name,
               row.p10.count(), row.median.count(), row.p95.count(), row.over_floor.count(),
               Interval(row.to_floor), row.to_peer ? Interval(*row.to_peer) : std::string("-"));
  }
}

void Print(std::span<const ThroughputRow> rows) {
  fmt::print("\n{:<20} {:>8} {:>10} {:>8}\n", "runs a second", "workers", "", "/ V");
  for (const ThroughputRow& row : rows) {
    fmt::print("{:<20} {:>8} {:>10.0f} {:>8.2f}\n", row.name, row.workers, row.runs_a_second,
               row.to_floor);
  }
}

void WriteJson(const Report& report, const std::string& path) {
  json::object document{{"machine", ToJson(report.machine)}};
  if (!report.peer_command.empty()) document["bubblewrap"] = report.peer_command;
  json::array latency;
  for (const LatencyTable& table : report.latency) latency.push_back(ToJson(table));
  document["latency"] = std::move(latency);
  json::array throughput;
  for (const ThroughputRow& row : report.throughput) throughput.push_back(ToJson(row));
  document["throughput"] = std::move(throughput);
  std::ofstream file(path);
  file << json::serialize(document) << '\n';
  if (!file.flush()) DieErrno("cannot write " + path);
}

}  // namespace palmshed::benchmarks
