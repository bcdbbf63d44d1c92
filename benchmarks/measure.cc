// Figures about one matter beside latency and throughput, which palmshed_latency measures.
//
// One matter in a process: what it has done to the process and its namespaces goes with it.
#include <sys/resource.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>  // IWYU pragma: keep (else App lacks the formatters that it makes)
#include <CLI/Validators.hpp>
#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/machine.h"
#include "benchmarks/report.h"
#include "benchmarks/statistics.h"
#include "benchmarks/subject.h"

namespace palmshed::benchmarks {
namespace {

struct Subject {
  const char* name;
  std::vector<Figure> (*measure)(const Settings&);
};

constexpr std::array kSubjects{
    Subject{"steps", MeasureSteps},
    Subject{"live", MeasureLive},
    Subject{"resident", MeasureResident},
    Subject{"mounts", MeasureMounts},
    Subject{"files", MeasureFiles},
    Subject{"output", MeasureOutput},
    Subject{"much-output", MeasureMuchOutput},
    Subject{"limits", MeasureEnforcement},
    Subject{"ramp", MeasureRamp},
};

struct Options {
  std::string subject;
  int rounds = 30;
  int most = 2000;
  bool smoke = false;
  std::string json;
};

std::vector<std::string> Names() {
  std::vector<std::string> names;
  names.reserve(kSubjects.size());
  for (const Subject& subject : kSubjects) names.emplace_back(subject.name);
  return names;
}

/// A live sandbox takes a few descriptors.
void AllowManyDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) DieErrno("getrlimit");
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) DieErrno("setrlimit");
}

int Run(const Options& options) {
  constexpr int kFewRounds = 3;
  constexpr int kFewSandboxes = 10;
  AllowManyDescriptors();
  Random random(std::random_device{}());
  const Settings settings{.rounds = options.smoke ? kFewRounds : options.rounds,
                          .most = options.smoke ? kFewSandboxes : options.most,
                          .small = options.smoke,
                          .random = random};
  const auto* subject = std::ranges::find(kSubjects, options.subject, &Subject::name);
  const Machine machine = ThisMachine();
  Print(machine);
  const auto figures = subject->measure(settings);
  Print(figures);
  if (!options.json.empty()) WriteJson(machine, {}, figures, options.json);
  return 0;
}

}  // namespace
}  // namespace palmshed::benchmarks

int main(int argc, char** argv) {
  using namespace palmshed::benchmarks;  // NOLINT(google-build-using-namespace)
  CLI::App app{"What growth, output and limits cost"};
  Options options;
  app.add_option("subject", options.subject, "What to measure")
      ->required()
      ->check(CLI::IsMember(Names()));
  app.add_option("--rounds", options.rounds, "Rounds of each comparison")
      ->check(CLI::PositiveNumber);
  app.add_option("--most", options.most, "Most live sandboxes")->check(CLI::PositiveNumber);
  app.add_flag("--smoke", options.smoke, "Little of everything: does it work?");
  app.add_option("--json", options.json, "Write the figures to a file");
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}
