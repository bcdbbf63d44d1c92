#include "benchmarks/variants.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/peers.h"
#include "benchmarks/schedule.h"
#include "benchmarks/spawn.h"
#include "benchmarks/workload.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

constexpr char kNoopInside[] = "./noop";

Variant Spawned(const std::string& name, const std::string& floor, std::vector<std::string> argv) {
  const auto command = std::make_shared<const Command>(std::move(argv));
  return {.name = name, .floor = floor, .run = [command] { command->Run(); }};
}

Variant Tried(const Peer& peer) {
  const auto command = std::make_shared<const Command>(peer.command);
  return {.name = peer.name, .floor = kFloor, .attempt = [command] { return command->Try(); }};
}

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// With every limit, none of which is met; nullptr where the host does not enforce one of them.
std::unique_ptr<Sandbox> LimitedSandbox(Engine& engine) {
  auto sandbox = engine.CreateSandbox({.cpu_quota = 0.9,
                                       .cpu_time_limit = std::chrono::seconds(100),
                                       .memory = Bytes{256U << 20},
                                       .disk_quota = Bytes{1U << 30},
                                       .timeout = std::chrono::seconds(100),
                                       .pids = 100});
  if (sandbox) return std::make_unique<Sandbox>(*std::move(sandbox));
  fmt::print("{}: absent, {}\n", kLimitedExec, sandbox.error().message);
  return nullptr;
}

}  // namespace

void MustRun(Sandbox& sandbox, const std::string& program) {
  const ExecResult result = Must(sandbox.Run({program}));
  if (!result.ok()) {
    Die(program + " in a sandbox: " + std::string(ToString(result.termination.cause)) + " " +
        result.termination.stage + ", exit code " + std::to_string(result.exit_code));
  }
}

std::unique_ptr<Variants> Variants::Create(const Programs& programs, const Peers& peers) {
  Engine engine = Must(Engine::Create());
  Sandbox live = Must(engine.CreateSandbox());
  std::unique_ptr<Variants> made(new Variants(std::move(engine), std::move(live)));
  made->limited_ = LimitedSandbox(made->engine_);
  made->AddFloorAndPeers(programs, peers);
  if (!programs.noop.empty()) made->AddNoop(programs.noop);
  made->AddExecutions();
  made->AddLives();
  made->AddStarts();
  for (Variant& variant : WorkloadVariants(made->live_)) {
    made->variants_.push_back(std::move(variant));
  }
  return made;
}

void Variants::AddFloorAndPeers(const Programs& programs, const Peers& peers) {
  variants_.push_back(Spawned(kFloor, kFloor, {kProgram}));
  for (const Peer& peer : peers.all()) {
    if (peer.command.empty()) continue;
    variants_.push_back(Tried(peer));
    peers_.push_back(peer.name);
  }
  if (!programs.palmshed.empty()) {
    variants_.push_back(Spawned(kCommandLine, kFloor, {programs.palmshed, "run", "--", kProgram}));
  }
}

void Variants::AddNoop(const std::string& noop) {
  variants_.push_back(Spawned(kNoopFloor, kNoopFloor, {noop}));
  Must(live_.WriteFile("noop", Content(noop), 0755));
  variants_.push_back(
      {.name = kNoopExec, .floor = kNoopFloor, .run = [this] { MustRun(live_, kNoopInside); }});
}

void Variants::AddExecutions() {
  variants_.push_back(
      {.name = kExec, .floor = kFloor, .run = [this] { MustRun(live_, kProgram); }});
  if (limited_) {
    variants_.push_back(
        {.name = kLimitedExec, .floor = kExec, .run = [this] { MustRun(*limited_, kProgram); }});
  } else {
    absent_.emplace_back(kLimitedExec);
  }
  variants_.push_back({.name = kOneShot, .floor = kFloor, .run = [this] {
                         Sandbox sandbox = Must(engine_.CreateSandbox());
                         MustRun(sandbox, kProgram);
                         Must(sandbox.Destroy());
                       }});
}

void Variants::AddLives() {
  const auto create = [this] { fresh_ = std::make_unique<Sandbox>(Must(engine_.CreateSandbox())); };
  const auto destroy = [this] { Must(fresh_->Destroy()); };
  variants_.push_back({.name = kCreate, .floor = kFloor, .run = create, .finish = destroy});
  variants_.push_back({.name = kDestroy, .floor = kFloor, .prepare = create, .run = destroy});
}

void Variants::AddStarts() {
  const auto start = [this] { new_engine_ = std::make_unique<Engine>(Must(Engine::Create())); };
  const auto create = [this] {
    fresh_ = std::make_unique<Sandbox>(Must(new_engine_->CreateSandbox()));
  };
  const auto stop = [this] { new_engine_.reset(); };
  const auto destroy_and_stop = [this] {
    Must(fresh_->Destroy());
    new_engine_.reset();
  };
  variants_.push_back({.name = kNewEngine, .floor = kFloor, .run = start, .finish = stop});
  variants_.push_back({.name = kColdCreate,
                       .floor = kFloor,
                       .prepare = start,
                       .run = create,
                       .finish = destroy_and_stop});
  variants_.push_back({.name = kFirstCreate,
                       .floor = kFloor,
                       .run =
                           [start, create] {
                             start();
                             create();
                           },
                       .finish = destroy_and_stop});
}

void Variants::KeepOnly(const std::vector<std::string>& names) {
  std::vector<std::string> wanted = names;
  wanted.insert(wanted.end(), peers_.begin(), peers_.end());
  wanted.emplace_back(kFloor);
  for (const std::string& name : names) {
    if (std::ranges::find(absent_, name) != absent_.end()) continue;
    const auto found = std::ranges::find(variants_, name, &Variant::name);
    if (found == variants_.end()) Die("there is no variant named " + name);
    wanted.push_back(found->floor);
  }
  std::erase_if(variants_, [&](const Variant& variant) {
    return std::ranges::find(wanted, variant.name) == wanted.end();
  });
}

}  // namespace palmshed::benchmarks
