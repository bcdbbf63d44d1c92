// How long workloads outlive an engine that is killed.
//
// A child process is the host program: it makes an engine and sandboxes and starts a program in
// each. This process, which made no engine, opens a pidfd of everything below the host, kills the
// host with SIGKILL, and waits until all pidfds have turned readable. With --forked the host has
// forked a copy of itself before, which keeps its sockets and its lock files open and lives on.
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>  // IWYU pragma: keep (else App lacks the formatters that it makes)
#include <CLI/Validators.hpp>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/machine.h"
#include "benchmarks/process_tree.h"
#include "benchmarks/report.h"
#include "benchmarks/statistics.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

/// Nothing should take so long; then what is left is counted as a survivor.
constexpr std::chrono::seconds kPatience{10};

struct Options {
  int rounds = 20;
  int sandboxes = 8;
  bool forked = false;
};

/// A host program at work. `copy` is the pid of its fork, or 0.
struct Host {
  pid_t pid = 0;
  pid_t copy = 0;
};

pid_t ForkThatWaits() {
  const pid_t pid = ::fork();
  if (pid < 0) DieErrno("fork");
  if (pid > 0) return pid;
  while (true) (void)::pause();
}

/// Says when all programs run (each has printed), then waits to be killed.
[[noreturn]] void BeHost(const Options& options, int report) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  Engine engine = Must(Engine::Create());
  std::vector<Sandbox> sandboxes;
  std::vector<Execution> executions;
  for (int i = 0; i < options.sandboxes; ++i) {
    sandboxes.push_back(Must(engine.CreateSandbox()));
    // The second program has left its session, so that no signal to a group reaches it.
    executions.push_back(
        Must(sandboxes.back().StartShell("setsid sleep 1000 & echo ready; exec sleep 1000")));
  }
  std::array<std::byte, 16> output{};
  for (const Execution& execution : executions) Must(execution.Read(Stream::kStdout, 0, output));
  const pid_t copy = options.forked ? ForkThatWaits() : 0;
  if (::write(report, &copy, sizeof copy) != sizeof copy) DieErrno("write");
  while (true) (void)::pause();
}

Host StartHost(const Options& options) {
  std::array<int, 2> report{};
  if (::pipe(report.data()) != 0) DieErrno("pipe");
  Host host{.pid = ::fork()};
  if (host.pid < 0) DieErrno("fork");
  if (host.pid == 0) BeHost(options, report[1]);
  (void)::close(report[1]);
  if (::read(report[0], &host.copy, sizeof host.copy) != sizeof host.copy) Die("the host failed");
  (void)::close(report[0]);
  return host;
}

std::vector<pollfd> Watch(const std::vector<pid_t>& pids) {
  std::vector<pollfd> watched;
  for (const pid_t pid : pids) {
    const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (fd < 0) DieErrno("pidfd_open");
    watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
  return watched;
}

/// Takes out what has ended until nothing is left; returns how many are.
std::size_t AwaitEnds(std::vector<pollfd> watched) {
  const auto deadline = Clock::now() + kPatience;
  while (!watched.empty() && Clock::now() < deadline) {
    if (::poll(watched.data(), watched.size(), 1000) < 0) DieErrno("poll");
    std::erase_if(watched,
                  [](const pollfd& one) { return one.revents != 0 && ::close(one.fd) == 0; });
  }
  return watched.size();
}

Micros KillAndWait(const Options& options) {
  const Host host = StartHost(options);
  auto pids = Descendants(host.pid);
  std::erase(pids, host.copy);
  if (pids.size() < static_cast<std::size_t>(options.sandboxes) * 3) {
    Die(fmt::format("{} processes for {} sandboxes", pids.size(), options.sandboxes));
  }
  const auto watched = Watch(pids);
  const auto start = Clock::now();
  if (::kill(host.pid, SIGKILL) != 0) DieErrno("kill");
  const std::size_t survivors = AwaitEnds(watched);
  const Micros taken = Clock::now() - start;
  if (host.copy != 0) (void)::kill(host.copy, SIGKILL);
  (void)::waitpid(host.pid, nullptr, 0);
  if (survivors != 0) Die(fmt::format("{} processes outlived the engine", survivors));
  return taken;
}

/// An engine collects the files of those that were killed, and has done so when it ends.
void CollectWhatIsLeft() {
  Engine engine = Must(Engine::Create());
  Must(Must(engine.CreateSandbox()).Destroy());
}

int Run(const Options& options) {
  Print(ThisMachine());
  std::vector<Micros> samples;
  samples.reserve(static_cast<std::size_t>(options.rounds));
  for (int i = 0; i < options.rounds; ++i) samples.push_back(KillAndWait(options));
  CollectWhatIsLeft();
  fmt::print(
      "from SIGKILL of the engine to the last end, {} sandboxes with 2 programs each{}, "
      "n = {}: median {:.1f} ms, p95 {:.1f} ms, longest {:.1f} ms\n",
      options.sandboxes, options.forked ? ", a fork of the host lives on" : "", samples.size(),
      Median(samples).count() / 1000, Quantile(samples, 0.95).count() / 1000,
      Quantile(samples, 1).count() / 1000);
  return 0;
}

}  // namespace
}  // namespace palmshed::benchmarks

int main(int argc, char** argv) {
  CLI::App app{"How long workloads outlive an engine that is killed"};
  palmshed::benchmarks::Options options;
  app.add_option("--rounds", options.rounds, "How often")->check(CLI::PositiveNumber);
  app.add_option("--sandboxes", options.sandboxes, "Live ones")->check(CLI::PositiveNumber);
  app.add_flag("--forked", options.forked, "A fork of the host program lives on");
  CLI11_PARSE(app, argc, argv);
  return palmshed::benchmarks::Run(options);
}
