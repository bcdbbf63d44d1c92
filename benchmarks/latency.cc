// Latency and throughput of sandboxed runs, each beside the floor and a peer in the same run.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>  // IWYU pragma: keep (else App lacks the formatters that it makes)
#include <CLI/Validators.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

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
  std::string bubblewrap = "/usr/bin/bwrap";
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
  app.add_option("--bwrap", options.bubblewrap, "Bubblewrap");
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
  const auto if_there = [](const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0 ? path : std::string();
  };
  return {.bubblewrap = if_there(options.bubblewrap),
          .palmshed = if_there(options.palmshed),
          .noop = Beside("palmshed_noop")};
}

void MeasureLatency(const Options& options, const Programs& programs, Random& random,
                    Report& report) {
  const auto variants = Variants::Create(programs);
  if (!options.only.empty()) variants->KeepOnly(options.only);
  for (const int gap_ms : options.gaps) {
    const std::chrono::milliseconds gap(gap_ms);
    const auto series = Measure(variants->all(), gap, Rounds(options, gap_ms), random);
    report.latency.push_back(Summarize(gap, series, random));
    Print(report.latency.back());
    (void)std::fflush(stdout);  // A run takes minutes; its reader sees each table when it is there.
  }
}

int Check(const Report& report) {
  const auto excesses = Excesses(report.latency);
  for (const std::string& excess : excesses) fmt::print(stderr, "over the limit: {}\n", excess);
  return excesses.empty() ? 0 : 1;
}

int Run(const Options& options) {
  const Programs programs = Present(options);
  Random random(std::random_device{}());
  Report report{.machine = ThisMachine(), .peer_command = {}};
  if (!programs.bubblewrap.empty()) {
    report.peer_command = Command(BubblewrapCommand(programs.bubblewrap)).Text();
  }
  PrintHead(report);
  if (programs.palmshed.empty()) fmt::print("palmshed run: absent, the program is not there\n");
  if (options.throughput) {
    const std::chrono::milliseconds block(options.smoke ? 20 : 1000);
    report.throughput = MeasureThroughput(programs, block, options.smoke ? 1 : 3, random);
    Print(report.throughput);
  } else {
    MeasureLatency(options, programs, random, report);
  }
  if (!options.json.empty()) WriteJson(report, options.json);
  return options.check ? Check(report) : 0;
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
