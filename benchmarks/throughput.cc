#include "benchmarks/throughput.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/peers.h"
#include "benchmarks/report.h"
#include "benchmarks/spawn.h"
#include "benchmarks/statistics.h"
#include "benchmarks/variants.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kWorkers{1, 2, 4, 16, 64};

/// What one worker does again and again; the argument is its number. What is not ours may fail, and
/// then is not counted.
struct Work {
  std::string name;
  std::function<bool(int)> run;
};

Work Spawning(const std::string& name, std::vector<std::string> argv) {
  const auto command = std::make_shared<const Command>(std::move(argv));
  return {.name = name, .run = [command](int) {
            command->Run();
            return true;
          }};
}

Work Trying(const std::string& name, std::vector<std::string> argv) {
  const auto command = std::make_shared<const Command>(std::move(argv));
  return {.name = name, .run = [command](int) { return command->Try().empty(); }};
}

/// The sandboxes that the work uses: one for each worker, and one for all.
struct Live {
  Engine engine = Must(Engine::Create());
  std::vector<Sandbox> own{};
  Sandbox shared = Must(engine.CreateSandbox());
};

std::vector<Work> AllWork(const Programs& programs, const Peers& peers) {
  const auto live = std::make_shared<Live>();
  for (int i = 0; i < kWorkers.back(); ++i) live->own.push_back(Must(live->engine.CreateSandbox()));
  std::vector<Work> work{Spawning(kFloor, {kProgram})};
  // Of the others some have containers with names, and can run only one at a time.
  for (const char* name : {kPeer, "nsjail"}) {
    const auto command = peers.CommandOf(name);
    if (!command.empty()) work.push_back(Trying(name, command));
  }
  if (!programs.palmshed.empty()) {
    work.push_back(Spawning(kCommandLine, {programs.palmshed, "run", "--", kProgram}));
  }
  work.push_back({kExec, [live](int worker) {
                    MustRun(live->own[static_cast<std::size_t>(worker)], kProgram);
                    return true;
                  }});
  work.push_back({"exec, one sandbox", [live](int) {
                    MustRun(live->shared, kProgram);
                    return true;
                  }});
  work.push_back({kOneShot, [live](int) {
                    Sandbox sandbox = Must(live->engine.CreateSandbox());
                    MustRun(sandbox, kProgram);
                    Must(sandbox.Destroy());
                    return true;
                  }});
  return work;
}

double RunsPerSecond(const Work& work, int workers, std::chrono::milliseconds block) {
  std::atomic<bool> stop = false;
  std::atomic<int> runs = 0;
  std::latch ready(workers + 1);
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      (void)work.run(worker);
      ready.arrive_and_wait();
      while (!stop) {
        if (work.run(worker)) ++runs;
      }
    });
  }
  ready.arrive_and_wait();
  const auto start = Clock::now();
  const int before = runs;
  std::this_thread::sleep_for(block);
  const int done = runs - before;
  const std::chrono::duration<double> taken = Clock::now() - start;
  stop = true;
  return done / taken.count();
}

double MedianOf(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, middle);
  return *middle;
}

}  // namespace

std::vector<ThroughputRow> MeasureThroughput(const Programs& programs, const Peers& peers,
                                             std::chrono::milliseconds block, int rounds,
                                             Random& random) {
  struct Block {
    const Work* work;
    int workers;
    std::vector<double> rates{};
  };
  const std::vector<Work> all = AllWork(programs, peers);
  std::vector<Block> blocks;
  for (const Work& work : all) {
    for (const int workers : kWorkers) blocks.push_back({.work = &work, .workers = workers});
  }
  for (int round = 0; round < rounds; ++round) {
    std::ranges::shuffle(blocks, random);
    for (Block& one : blocks) {
      one.rates.push_back(RunsPerSecond(*one.work, one.workers, block));
    }
  }
  std::ranges::sort(blocks, {}, [](const Block& one) { return std::pair(one.work, one.workers); });
  std::vector<ThroughputRow> rows;
  rows.reserve(blocks.size());
  for (const Block& one : blocks) {
    rows.push_back(
        {.name = one.work->name, .workers = one.workers, .runs_a_second = MedianOf(one.rates)});
  }
  // The floor comes first, with the same numbers of workers in the same order.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].to_floor = rows[i].runs_a_second / rows[i % kWorkers.size()].runs_a_second;
  }
  return rows;
}

}  // namespace palmshed::benchmarks
