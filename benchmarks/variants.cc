#include "benchmarks/variants.h"

#include <algorithm>
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
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

constexpr char kNoopInside[] = "./noop";

Variant Spawned(const std::string& name, const std::string& floor, std::vector<std::string> argv) {
  const auto command = std::make_shared<const Command>(std::move(argv));
  return {.name = name, .floor = floor, .run = [command] { command->Run(); }};
}

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<std::string> BubblewrapCommand(const std::string& bubblewrap) {
  return {bubblewrap,  "--unshare-all", "--ro-bind", "/usr",    "/usr",  "--symlink",
          "usr/bin",   "/bin",          "--symlink", "usr/lib", "/lib",  "--symlink",
          "usr/lib64", "/lib64",        "--proc",    "/proc",   "--dev", "/dev",
          "--tmpfs",   "/tmp",          "--",        kProgram};
}

void MustRun(Sandbox& sandbox, const std::string& program) {
  const ExecResult result = Must(sandbox.Run({program}));
  if (!result.ok()) {
    Die(program + " in a sandbox: " + std::string(ToString(result.termination.cause)) + " " +
        result.termination.stage + ", exit code " + std::to_string(result.exit_code));
  }
}

std::unique_ptr<Variants> Variants::Create(const Programs& programs) {
  Engine engine = Must(Engine::Create());
  Sandbox live = Must(engine.CreateSandbox());
  std::unique_ptr<Variants> made(new Variants(std::move(engine), std::move(live)));
  made->AddFloorAndPeers(programs);
  if (!programs.noop.empty()) made->AddNoop(programs.noop);
  made->AddExecutions();
  made->AddLives();
  return made;
}

void Variants::AddFloorAndPeers(const Programs& programs) {
  variants_.push_back(Spawned(kFloor, kFloor, {kProgram}));
  if (!programs.bubblewrap.empty()) {
    variants_.push_back(Spawned(kPeer, kFloor, BubblewrapCommand(programs.bubblewrap)));
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
  variants_.push_back({.name = kFirstCreate,
                       .floor = kFloor,
                       .run =
                           [this] {
                             new_engine_ = std::make_unique<Engine>(Must(Engine::Create()));
                             fresh_ = std::make_unique<Sandbox>(Must(new_engine_->CreateSandbox()));
                           },
                       .finish =
                           [this] {
                             Must(fresh_->Destroy());
                             new_engine_.reset();
                           }});
}

void Variants::KeepOnly(const std::vector<std::string>& names) {
  std::vector<std::string> wanted = names;
  wanted.insert(wanted.end(), {kFloor, kPeer});
  for (const std::string& name : names) {
    const auto found = std::ranges::find(variants_, name, &Variant::name);
    if (found == variants_.end()) Die("there is no variant named " + name);
    wanted.push_back(found->floor);
  }
  std::erase_if(variants_, [&](const Variant& variant) {
    return std::ranges::find(wanted, variant.name) == wanted.end();
  });
}

}  // namespace palmshed::benchmarks
