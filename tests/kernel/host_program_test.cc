// The program that an engine lives in: it keeps its signals, umask, directory and descriptors.
#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

class HostProgram : public KernelTest {};

std::ptrdiff_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

std::ptrdiff_t Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

/// Everything process-wide that a careless library changes.
struct State {
  std::array<void (*)(int), 32> handlers{};
  sigset_t blocked{};
  mode_t mask{};
  std::string directory, locale;
  std::array<rlimit, RLIM_NLIMITS> limits{};
  std::string environment;
  int dumpable = 0;
};

State Capture() {
  State state;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action{};
    (void)::sigaction(signal, nullptr, &action);
    state.handlers[static_cast<std::size_t>(signal)] = action.sa_handler;
  }
  (void)::pthread_sigmask(SIG_BLOCK, nullptr, &state.blocked);
  state.mask = ::umask(0);
  (void)::umask(state.mask);
  state.directory = std::filesystem::current_path();
  state.locale = std::setlocale(LC_ALL, nullptr);
  for (std::size_t i = 0; i < state.limits.size(); ++i) {
    (void)::getrlimit(static_cast<__rlimit_resource_t>(i), &state.limits[i]);
  }
  for (char** variable = environ; *variable != nullptr; ++variable) state.environment += *variable;
  state.dumpable = ::prctl(PR_GET_DUMPABLE);
  return state;
}

void ExpectSame(const State& a, const State& b) {
  EXPECT_EQ(a.handlers, b.handlers);
  EXPECT_EQ(std::memcmp(&a.blocked, &b.blocked, sizeof a.blocked), 0);
  EXPECT_EQ(a.mask, b.mask);
  EXPECT_EQ(a.directory, b.directory);
  EXPECT_EQ(a.locale, b.locale);
  EXPECT_EQ(a.environment, b.environment);
  EXPECT_EQ(a.dumpable, b.dumpable);
  EXPECT_EQ(std::memcmp(a.limits.data(), b.limits.data(), sizeof a.limits), 0);
}

void UseAnEngine(const std::string& root) {
  Engine engine = Must(Engine::Create({.workspace_root = root}));
  Sandbox sandbox = MakeSandboxIn(engine);
  EXPECT_THAT(ExecShell(sandbox, "cat; echo x", {.stdin_bytes = "in "}), ExitedWith(0, "in x\n"));
  EXPECT_THAT(Exec(sandbox, {"./probe", "stay"}, {.timeout = Millis(50)}),
              EndedBy(Cause::kWallTimeout));
}

TEST_F(HostProgram, KeepsItsProcessWideState) {
  const State before = Capture();
  UseAnEngine(workspaces());
  ExpectSame(before, Capture());
}

/// A sanitizer that has a thread of its own begins it with the first of the program.
void BeginAndEndAThread() {
  std::string task = "/proc/self/task/";
  std::thread([&] { task += std::to_string(::gettid()); }).join();
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(task); }));
}

TEST_F(HostProgram, LosesNoDescriptorAndNoThread) {
  BeginAndEndAThread();
  const auto threads = Threads();
  UseAnEngine(workspaces());  // Whatever is opened once and for all is open now.
  EXPECT_TRUE(Eventually([&] { return Threads() == threads; })) << Threads();
  const auto descriptors = OpenDescriptors();
  for (int i = 0; i < 5; ++i) UseAnEngine(workspaces());
  EXPECT_EQ(OpenDescriptors(), descriptors);
  EXPECT_TRUE(Eventually([&] { return Threads() == threads; })) << Threads();
}

TEST_F(HostProgram, ExecutionsLeaveNoDescriptor) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_TRUE(ExecShell(sandbox, "true").ok());
  const auto before = OpenDescriptors();
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(ExecShell(sandbox, "cat", {.stdin_bytes = "x"}).ok());
    Must(sandbox.WriteFile("f", "x"));
    Must(sandbox.ReadFile("f"));
  }
  EXPECT_FALSE(sandbox.Start({}));
  EXPECT_EQ(Exec(sandbox, {"no-such-program"}).exit_code, -1);
  // What a later one would be quicker with is given up once none has come for a while.
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() == before; }, kRest)) << OpenDescriptors();
}

TEST_F(HostProgram, IdleSandboxCostsTwoDescriptors) {
  (void)MakeSandbox();
  std::vector<Sandbox> sandboxes;
  sandboxes.push_back(MakeSandbox());
  const auto before = OpenDescriptors();
  for (int i = 0; i < 10; ++i) {
    sandboxes.push_back(MakeSandbox());
    EXPECT_TRUE(ExecShell(sandboxes.back(), "true").ok());
  }
  EXPECT_TRUE(Eventually([&] { return OpenDescriptors() - before <= 20; }, kRest))
      << OpenDescriptors();
}

TEST_F(HostProgram, DescriptorsOfTheEngineAreCloseOnExec) {
  Sandbox sandbox = MakeSandbox();
  const Execution running = Must(sandbox.Start({"./probe", "stay"}, {.stdin_pipe = true}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  const auto without = [] {
    std::string names;
    for (int fd = 3; fd < 1024; ++fd) {
      const int flags = ::fcntl(fd, F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0) names += std::to_string(fd) + " ";
    }
    return names;
  };
  const std::string after = without();
  StopEngine();
  // The test's own parent may have left some open.
  EXPECT_EQ(after, without());
}

TEST_F(HostProgram, ThreadsOfTheEngineBlockAllSignals) {
  Sandbox sandbox = MakeSandbox();
  int others = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::getpid())) continue;
    const std::string status = SlurpIfThere(task.path() / "status");
    // All but SIGKILL and SIGSTOP, and the two that the C library keeps for itself.
    EXPECT_THAT(status,
                ::testing::ContainsRegex("SigBlk:\tf+e7ff[bf]fe[bf]ff|SigBlk:\tfffffffe7ffbfeff"));
    ++others;
  }
  EXPECT_GT(others, 0);
}

// A host program that reaps every child, or ignores SIGCHLD, must not confuse the engine.
TEST_F(HostProgram, MayReapEverythingItself) {
  InForkedProcess([] {
    ::signal(SIGCHLD, SIG_IGN);
    const TempDir root;
    UseAnEngine(root.path());
  });
}

TEST_F(HostProgram, MayHaveClosedItsSignalsToBrokenPipes) {
  Sandbox sandbox = MakeSandbox();
  // Writing to a program that has gone must not raise SIGPIPE here.
  Execution gone = Must(sandbox.Start({"true"}, {.stdin_pipe = true}));
  Must(gone.Wait());
  const std::vector<std::byte> bytes(1 << 20);
  for (int i = 0; i < 3; ++i) (void)gone.Write(bytes);
  EXPECT_THAT(ExecShell(sandbox, "exec <&-; echo ok", {.stdin_bytes = std::string(1 << 20, 'x')}),
              ExitedWith(0, "ok\n"));
}

}  // namespace
}  // namespace palmshed::tests
