// Latency and throughput of sandboxed runs, each beside the floor and a peer in the same run.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>  // IWYU pragma: keep (else App lacks the formatters that it makes)
#include <CLI/Validators.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/figure.h"
#include "benchmarks/limits.h"
#include "benchmarks/machine.h"
#include "benchmarks/peers.h"
#include "benchmarks/report.h"
#include "benchmarks/schedule.h"
#include "benchmarks/spawn.h"
#include "benchmarks/statistics.h"
#include "benchmarks/throughput.h"
#include "benchmarks/variants.h"

namespace palmshed::benchmarks {
namespace {

struct Options {
  int rounds = 200;
  std::vector<int> gaps{0, 50, 1000};
  std::vector<std::string> only;
  std::string json;
  std::vector<std::string> peers;
  std::string palmshed = Beside("palmshed");
  bool throughput = false;
  bool smoke = false;
  bool check = false;
};

void Declare(CLI::App& app, Options& options) {
  app.add_option("--rounds", options.rounds,
                 "Rounds without a gap; a fifth with 50 ms, a twentieth with 1 s")
      ->check(CLI::PositiveNumber);
  app.add_option("--gaps", options.gaps, "Milliseconds of idleness before each run")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  app.add_option("--only", options.only, "Variants to measure (and their floors)");
  app.add_option("--json", options.json, "Write the figures to a file");
  app.add_option("--peers", options.peers, "Those to compare with; else all that are present")
      ->delimiter(',');
  app.add_option("--cli", options.palmshed, "The program palmshed");
  app.add_flag("--throughput", options.throughput, "Runs a second instead of latency");
  app.add_flag("--smoke", options.smoke, "A few rounds: does it work?");
  app.add_flag("--check", options.check, "Fail where a ratio exceeds its limit beyond noise");
}

/// Long gaps get fewer rounds; they would take hours, and scatter less.
int Rounds(const Options& options, int gap_ms) {
  if (options.smoke) return 3;
  if (gap_ms < 20) return options.rounds;
  return std::max(5, options.rounds / (gap_ms < 500 ? 5 : 20));
}

Programs Present(const Options& options) {
  const bool there = ::access(options.palmshed.c_str(), X_OK) == 0;
  return {.palmshed = there ? options.palmshed : "", .noop = Beside("palmshed_noop")};
}

std::vector<LatencyTable> MeasureLatency(const Options& options, const Programs& programs,
                                         const Peers& peers, Random& random) {
  const auto variants = Variants::Create(programs, peers);
  if (!options.only.empty()) variants->KeepOnly(options.only);
  std::vector<LatencyTable> tables;
  for (const int gap_ms : options.gaps) {
    const std::chrono::milliseconds gap(gap_ms);
    const auto series = Measure(variants->all(), gap, Rounds(options, gap_ms), random);
    tables.push_back(Summarize(gap, series, peers.all(), random));
    tables.back().absent = variants->absent();
    Print(tables.back());
    (void)std::fflush(stdout);  // A run takes minutes; its reader sees each table when it is there.
  }
  return tables;
}

std::vector<Peer> WithFailures(const Peers& peers, std::span<const LatencyTable> tables) {
  std::vector<Peer> all(peers.all().begin(), peers.all().end());
  for (const LatencyTable& table : tables) {
    for (const auto& [name, words] : table.failures) {
      const auto peer = std::ranges::find(all, name, &Peer::name);
      if (peer != all.end()) peer->failures.push_back(words);
    }
  }
  return all;
}

/// 0 where limits are kept, 1 where one is not, 3 where nobody can say.
int Check(std::span<const LatencyTable> tables) {
  constexpr int kNotJudged = 3;
  const auto excesses = Excesses(tables);
  for (const std::string& excess : excesses) fmt::print(stderr, "over the limit: {}\n", excess);
  if (excesses.empty()) return 0;
  if (!TooBusy(tables)) return 1;
  fmt::print(stderr, "not judged: the machine is too busy, V itself scatters\n");
  return kNotJudged;
}

int Run(const Options& options) {
  // Static, so that it is undone also when a run that fails ends the program.
  static Peers peers(options.peers);
  const Programs programs = Present(options);
  const Machine machine = ThisMachine();
  Random random(std::random_device{}());
  PrintHead(machine, peers.all());
  if (programs.palmshed.empty()) fmt::print("palmshed run: absent, the program is not there\n");
  std::vector<Figure> figures;
  std::vector<LatencyTable> tables;
  if (options.throughput) {
    const std::chrono::milliseconds block(options.smoke ? 20 : 1000);
    const auto rows = MeasureThroughput(programs, peers, block, options.smoke ? 1 : 3, random);
    Print(rows);
    figures = ToFigures(rows);
  } else {
    tables = MeasureLatency(options, programs, peers, random);
  }
  for (const LatencyTable& table : tables)
    std::ranges::copy(ToFigures(table), std::back_inserter(figures));
  if (!options.json.empty()) WriteJson(machine, WithFailures(peers, tables), figures, options.json);
  return options.check ? Check(tables) : 0;
}

}  // namespace
}  // namespace palmshed::benchmarks

int main(int argc, char** argv) {
  CLI::App app{"Latency and throughput of sandboxed runs beside a floor and a peer"};
  palmshed::benchmarks::Options options;
  palmshed::benchmarks::Declare(app, options);
  CLI11_PARSE(app, argc, argv);
  return palmshed::benchmarks::Run(options);
}
