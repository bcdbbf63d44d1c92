// What it costs to put each run into a cgroup leaf of its own, on version 1 hierarchies.
//
// Attaching a process by a write to cgroup.procs waits for an RCU grace period when the machine has
// been idle. So the write is compared with a child that was attached ahead of time and waits,
// armed, in its leaf. Version 2 needs neither: clone3(2) with CLONE_INTO_CGROUP bears the child in
// its leaf.
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>  // IWYU pragma: keep (else App lacks the formatters that it makes)
#include <CLI/Validators.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/armed_child.h"
#include "benchmarks/cgroup_leaf.h"
#include "benchmarks/machine.h"
#include "benchmarks/peers.h"
#include "benchmarks/report.h"
#include "benchmarks/schedule.h"
#include "benchmarks/spawn.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

/// The child of the variant that is being timed.
using Slot = std::unique_ptr<ArmedChild>;

std::vector<Variant> MakeVariants(Slot& slot, const CgroupLeaf& leaf, const Command& floor) {
  const auto arm = [&slot] { slot = std::make_unique<ArmedChild>(); };
  const auto run = [&slot] { slot->Run(); };
  const auto drop = [&slot] { slot.reset(); };
  const auto attach = [&slot, &leaf] { leaf.Attach(slot->pid()); };
  const auto arm_attached = [arm, attach] {
    arm();
    attach();
  };
  const auto attach_and_run = [run, attach] {
    attach();
    run();
  };
  return {{.name = kFloor, .floor = kFloor, .run = [&floor] { floor.Run(); }},
          {.name = "armed, no leaf", .floor = kFloor, .prepare = arm, .run = run, .finish = drop},
          {.name = "armed in its leaf",
           .floor = kFloor,
           .prepare = arm_attached,
           .run = run,
           .finish = drop},
          {.name = "attach, then run",
           .floor = kFloor,
           .prepare = arm,
           .run = attach_and_run,
           .finish = drop},
          {.name = "arming and attach", .floor = kFloor, .run = arm_attached, .finish = drop}};
}

int Run(int rounds) {
  const CgroupLeaf leaf("palmshed-benchmark-" + std::to_string(::getpid()),
                        {"memory", "pids", "cpu"});
  const Command floor({kProgram});
  Slot slot;
  const auto variants = MakeVariants(slot, leaf, floor);
  Random random(std::random_device{}());
  Print(ThisMachine());
  for (const int gap_ms : {0, 50, 1000}) {
    const int gap_rounds = gap_ms == 0 ? rounds : rounds / (gap_ms < 500 ? 4 : 20);
    const std::chrono::milliseconds gap(gap_ms);
    Print(Summarize(gap, Measure(variants, gap, std::max(gap_rounds, 3), random), {}, random));
  }
  return 0;
}

}  // namespace
}  // namespace palmshed::benchmarks

int main(int argc, char** argv) {
  CLI::App app{"What a cgroup leaf for each run costs on version 1 hierarchies"};
  int rounds = 200;
  app.add_option("--rounds", rounds, "Rounds without a gap")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  return palmshed::benchmarks::Run(rounds);
}
