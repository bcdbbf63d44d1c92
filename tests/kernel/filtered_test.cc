// Sandboxes without namespaces: what the weaker rung keeps inside, and what it ends. Everything
// here runs under one uid with its bystanders, so that only Landlock and seccomp can tell them
// apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/filtered_rung.h"
#include "support/host_listener.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::chrono::seconds kSoon{5};

class Filtered : public KernelTest {
 protected:
  void SetUp() override {
    PALMSHED_SKIP_UNLESS(HasLandlockScopes(), "Landlock has no scopes here (ABI 6)");
  }
};

/// Another process of the same user, which anybody may trace.
class Bystander {
 public:
  Bystander()
      : process_([](ChildHost& self) {
          (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
          self.Tell("ready");
          ChildHost::StayForEver();
        }) {
    EXPECT_EQ(process_.Hear(), "ready");
  }
  std::string pid() const { return std::to_string(process_.pid()); }
  bool alive() const { return ::waitpid(process_.pid(), nullptr, WNOHANG) == 0; }

 private:
  ChildHost process_;
};

/// A program of a name of its own that runs in the sandbox until it is ended.
struct Running {
  Running(Sandbox& sandbox, std::vector<std::string> arguments) : name(UniqueName()) {
    AddProbe(sandbox, name);
    arguments.insert(arguments.begin(), "./" + name);
    execution.emplace(Must(sandbox.Start(std::move(arguments))));
    EXPECT_TRUE(AwaitOutput(*execution, "ready"));
  }
  std::vector<HostProcess> processes() const { return FindProcesses(name); }
  bool gone() const {
    return Eventually([&] { return processes().empty(); }, kSoon);
  }

  std::string name;
  std::optional<Execution> execution;
};

/// Refused inside before it is there, and possible outside.
void ExpectMadeOnlyOutside(Sandbox& sandbox, const std::string& verb,
                           const std::string& directory) {
  const std::string path = directory + "/made-by-" + verb;
  EXPECT_EQ(Exec(sandbox, {"./probe", verb, path}).exit_code, kRefused) << verb << " " << path;
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(RunOnHost({ProbePath(), verb, path}).exit_code, kReached) << verb << " " << path;
  std::filesystem::remove(path);
}

// C037
TEST_F(Filtered, IsWhatAnOrdinaryUserGetsWithoutNamespaces) {
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    const Capabilities capabilities = Must(engine.GetCapabilities("native", true));
    EXPECT_EQ(capabilities.filesystem_view, "filtered");
    EXPECT_EQ(capabilities.crash_kill, "supervised");
    EXPECT_EQ(capabilities.os_filesystem_isolation, Support::kSupported);
    EXPECT_TRUE(capabilities.network_isolation);
    EXPECT_TRUE(capabilities.filesystem);
    EXPECT_TRUE(capabilities.streaming);
    ASSERT_THAT(capabilities.controls, Not(IsEmpty()));
    EXPECT_EQ(capabilities.controls.front().name, "userNamespaces");
    EXPECT_FALSE(capabilities.controls.front().works);
    EXPECT_THAT(capabilities.controls.front().remedy, Not(IsEmpty()));
  });
}

TEST_F(Filtered, ProgramsEndAsTheyDoElsewhere) {
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    EXPECT_THAT(ExecShell(sandbox, "echo out; cat; exit 7", {.stdin_bytes = "in\n"}),
                ExitedWith(7, "out\nin\n"));
    EXPECT_EQ(ExecShell(sandbox, "kill -SEGV $$").exit_code, 128 + SIGSEGV);
    EXPECT_THAT(Exec(sandbox, {"no-such-program"}), EndedBy(Cause::kStartupFailed));
    EXPECT_THAT(Exec(sandbox, {"sleep", "100"}, {.timeout = Millis{200}}),
                EndedBy(Cause::kWallTimeout));
    EXPECT_THAT(ExecShell(sandbox, "echo still usable"), ExitedWith(0, "still usable\n"));
  });
}

// What is not shown answers EACCES here, which git takes for a broken host. (Most of what git
// writes goes by way of chmod, which is closed.)
TEST_F(Filtered, GitFindsItsConfiguration) {
  PALMSHED_SKIP_UNLESS(OnPath("git"), "no git on this host");
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    const ExecResult result =
        ExecShell(sandbox, "git config --global user.name x && git config user.name");
    EXPECT_EQ(result.out.bytes, "x\n") << result.err.bytes;
  });
}

TEST_F(Filtered, WorkspaceIsAtItsHostPathWithTmpBeside) {
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    const std::string workspace = root.path() + "/" + std::string(sandbox.id()) + "/workspace";
    EXPECT_THAT(ExecShell(sandbox, "pwd; echo $HOME"),
                ExitedWith(0, workspace + "\n" + workspace + "\n"));
    EXPECT_THAT(ExecShell(sandbox, "pwd", {.work_dir = "sub/dir"}),
                ExitedWith(0, workspace + "/sub/dir\n"));
    const std::string tmp = ExecShell(sandbox,
                                      "echo $TMPDIR; echo x > $TMPDIR/f && "
                                      "ln $TMPDIR/f linked && mv $TMPDIR/f moved")
                                .out.bytes;
    EXPECT_EQ(tmp, root.path() + "/" + std::string(sandbox.id()) + "/tmp\n");
    EXPECT_EQ(Must(sandbox.ReadFile("moved")), "x\n");
    EXPECT_EQ(Must(sandbox.ReadFile("linked")), "x\n");
  });
}

TEST_F(Filtered, HostFilesAreOutOfReach) {
  OnFilteredRung([] {
    const TempDir root, project;
    const std::string canary = project.AddFile("secret.txt", "canary");
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    ExpectOnlyOutside(sandbox, {"read", canary});
    ExpectOnlyOutside(sandbox, {"open-for-writing", canary});
    ExpectMadeOnlyOutside(sandbox, "create", project.path());
    ExpectMadeOnlyOutside(sandbox, "mkdir", project.path());
    ExpectOnlyOutside(sandbox, {"list", project.path()});
    ExpectOnlyOutside(sandbox, {"list", "/tmp"});
    ExpectOnlyOutside(sandbox, {"list", "/proc"});
    ExpectOnlyOutside(sandbox, {"read", "/etc/passwd"});
    EXPECT_EQ(Exec(sandbox, {"./probe", "link", canary, "linked"}).exit_code, kRefused);
    EXPECT_EQ(Exec(sandbox, {"./probe", "rename", canary, "moved"}).exit_code, kRefused);
    EXPECT_EQ(Slurp(canary), "canary");
    const std::string linked = project.path() + "/linked";
    EXPECT_EQ(RunOnHost({ProbePath(), "link", canary, linked}).exit_code, kReached);
    EXPECT_EQ(RunOnHost({ProbePath(), "rename", linked, canary + "2"}).exit_code, kReached);
  });
}

// Landlock does not check these; the filter has to.
TEST_F(Filtered, AttributesOfHostFilesStayAsTheyAre) {
  OnFilteredRung([] {
    const TempDir root, project;
    const std::string canary = project.AddFile("secret.txt", "canary");
    const std::string link = project.path() + "/link";
    std::filesystem::create_symlink(canary, link);
    const auto mode = [&] {
      struct stat status{};
      EXPECT_EQ(::stat(canary.c_str(), &status), 0);
      return status.st_mode & 07777;
    };
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    for (const std::string& path : {canary, link}) {
      ASSERT_EQ(RunOnHost({"chmod", "600", path}).exit_code, 0);
      ASSERT_EQ(mode(), 0600U);
      EXPECT_NE(Exec(sandbox, {"chmod", "777", path}).exit_code, 0);
      EXPECT_EQ(mode(), 0600U);
    }
    ASSERT_EQ(RunOnHost({"touch", "-d", "2001-01-01", canary}).exit_code, 0);
    EXPECT_NE(Exec(sandbox, {"touch", "-c", "-d", "2002-02-02", canary}).exit_code, 0);
    EXPECT_EQ(std::filesystem::last_write_time(canary),
              (RunOnHost({"touch", "-d", "2001-01-01", project.AddFile("other", "")}),
               std::filesystem::last_write_time(project.path() + "/other")));
  });
}

// C004
TEST_F(Filtered, HostSocketsAreOutOfReach) {
  OnFilteredRung([] {
    const TempDir root, project;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    const auto tcp = HostListener::Tcp();
    const auto udp = HostListener::Udp();
    const auto abstract = HostListener::Abstract();
    const auto path = HostListener::Path(project.path() + "/socket");
    ExpectOnlyOutside(sandbox, {"tcp", "127.0.0.1", tcp->where()});
    ExpectOnlyOutside(sandbox, {"udp", "127.0.0.1", udp->where()});
    ExpectOnlyOutside(sandbox, {"abstract", abstract->where()});
    ExpectOnlyOutside(sandbox, {"path", path->where()});
    for (const auto* listener : {&tcp, &udp, &abstract, &path}) EXPECT_EQ((*listener)->hits(), 1);
  });
}

TEST_F(Filtered, NetworkAllowOpensTheNetworkAndNoUnixSocket) {
  OnFilteredRung([] {
    const TempDir root, project;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine, {.network = Network::kAllow});
    const auto tcp = HostListener::Tcp();
    const auto abstract = HostListener::Abstract();
    const auto path = HostListener::Path(project.path() + "/socket");
    EXPECT_EQ(Exec(sandbox, {"./probe", "tcp", "127.0.0.1", tcp->where()}).exit_code, kReached);
    ExpectOnlyOutside(sandbox, {"abstract", abstract->where()});
    ExpectOnlyOutside(sandbox, {"path", path->where()});
    EXPECT_EQ(Exec(sandbox, {"./probe", "read", "/etc/hosts"}).exit_code, kReached);
  });
}

TEST_F(Filtered, ProcessesOfTheSameUserAreOutOfReach) {
  OnFilteredRung([] {
    const Bystander bystander;
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    ExpectOnlyOutside(sandbox, {"may-signal", bystander.pid()});
    ExpectOnlyOutside(sandbox, {"trace-other", bystander.pid()});
    ExpectOnlyOutside(sandbox, {"read", "/proc/" + bystander.pid() + "/environ"});
    for (const char* ours : {"palmshed-superv", "palmshed-init", "palmshed-guard"}) {
      const pid_t pid = DescendantCalled(ours);
      ASSERT_NE(pid, 0) << ours;
      ExpectOnlyOutside(sandbox, {"may-signal", std::to_string(pid)});
      EXPECT_EQ(Exec(sandbox, {"./probe", "trace-other", std::to_string(pid)}).exit_code, kRefused);
    }
  });
}

// E6: kill(-1) in the pid namespace of the host.
TEST_F(Filtered, SignalToEverybodyReachesOneExecution) {
  OnFilteredRung([] {
    const Bystander bystander;
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    Sandbox other = MakeSandboxIn(engine);
    const Running neighbour(sandbox, {"stay"});
    const Running stranger(other, {"stay"});
    const ExecResult run = ExecShell(sandbox, "./probe signal-all 9; sleep 1000");
    EXPECT_EQ(run.exit_code, 128 + SIGKILL) << "the control: its own shell is reached";
    EXPECT_EQ(neighbour.processes().size(), 1U);
    EXPECT_EQ(stranger.processes().size(), 1U);
    EXPECT_TRUE(bystander.alive());
  });
}

TEST_F(Filtered, SandboxesAreClosedToEachOther) {
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    Sandbox other = MakeSandboxIn(engine);
    Must(other.WriteFile("secret", "canary"));
    const std::string home = root.path() + "/" + std::string(other.id());
    ExpectOnlyOutside(sandbox, {"read", home + "/workspace/secret"});
    for (const std::string& place : {home + "/workspace", home + "/tmp", home, root.path()}) {
      ExpectMadeOnlyOutside(sandbox, "create", place);
    }
    const Running running(other, {"stay"});
    ASSERT_EQ(running.processes().size(), 1U);
    ExpectOnlyOutside(sandbox, {"may-signal", std::to_string(running.processes()[0].pid)});
    Must(sandbox.Destroy());
    EXPECT_EQ(running.processes().size(), 1U);
  });
}

// C002
TEST_F(Filtered, EscapeesEndWithTheirExecution) {
  OnFilteredRung([] {
    const Bystander bystander;
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    const std::string left = UniqueName();
    AddProbe(sandbox, left);
    const ExecResult run = Exec(sandbox, {"./" + left, "daemon", "go"});
    EXPECT_THAT(run, ExitedWith(0, "ready\n"));
    EXPECT_THAT(FindProcesses(left), IsEmpty());

    const std::string late = UniqueName();
    AddProbe(sandbox, late);
    const Execution timed =
        Must(sandbox.Start({"./" + late, "daemon", "wait"}, {.timeout = Millis{700}}));
    ASSERT_TRUE(AwaitOutput(timed, "ready"));
    EXPECT_GE(FindProcesses(late).size(), 2U) << "the control: it did escape";
    EXPECT_THAT(Must(timed.Wait()), EndedBy(Cause::kWallTimeout));
    EXPECT_THAT(FindProcesses(late), IsEmpty());
    EXPECT_TRUE(bystander.alive());
  });
}

TEST_F(Filtered, NothingRunsWhenDestroyReturns) {
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    const std::string name = UniqueName();
    AddProbe(sandbox, name);
    const Execution many = Must(sandbox.Start(
        {"sh", "-c",
         "for i in 1 2 3 4 5 6 7 8 9 10; do ./" + name + " daemon go & done; wait; sleep 1000"}));
    EXPECT_TRUE(Eventually([&] { return FindProcesses(name).size() == 10; }, kSoon));
    Must(sandbox.Destroy());
    EXPECT_THAT(FindProcesses(name), IsEmpty());
    EXPECT_THAT(std::filesystem::is_empty(root.path()), true);
  });
}

// C019
TEST_F(Filtered, KilledEngineTakesEverythingAlong) {
  OnFilteredRung([] {
    const TempDir root;
    const std::string name = UniqueName();
    ChildHost host([&](ChildHost& self) {
      Engine engine = MakeEngine(root);
      Sandbox sandbox = MakeSandboxIn(engine);
      AddProbe(sandbox, name);
      const Execution escaped = Must(sandbox.Start({"./" + name, "daemon", "wait"}));
      self.Tell(AwaitOutput(escaped, "ready") ? "ready" : "failed");
      ChildHost::StayForEver();
    });
    ASSERT_EQ(host.Hear(), "ready");
    ASSERT_GE(FindProcesses(name).size(), 2U);
    host.Kill();
    EXPECT_TRUE(Eventually([&] { return FindProcesses(name).empty(); }, kSoon));
    EXPECT_TRUE(Eventually([] { return Descendants().empty(); }, kSoon))
        << ::testing::PrintToString(Descendants());
    Engine next = MakeEngine(root);
    Must(MakeSandboxIn(next).Destroy());
    EXPECT_TRUE(Eventually([&] { return std::filesystem::is_empty(root.path()); }, kSoon));
  });
}

/// Whatever of ours dies, by itself or with another, the escapee ends and the sandbox is lost.
void KillAndExpectTheEnd(const std::vector<std::string>& victims) {
  const TempDir root;
  Engine engine = MakeEngine(root);
  Sandbox sandbox = MakeSandboxIn(engine);
  const Running escaped(sandbox, {"daemon", "wait"});
  ASSERT_GE(escaped.processes().size(), 2U);
  std::vector<pid_t> pids;
  for (const std::string& victim : victims) pids.push_back(DescendantCalled(victim));
  for (const pid_t pid : pids) {
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
  }
  EXPECT_TRUE(escaped.gone());
  EXPECT_THAT(Must(escaped.execution->Wait()), EndedBy(Cause::kBackendLost));
  EXPECT_THAT(sandbox.Run({"true"}), FailsWith(ErrorCode::kBackendLost));
  Must(sandbox.Destroy());
  Sandbox next = MakeSandboxIn(engine);
  EXPECT_THAT(ExecShell(next, "echo healthy"), ExitedWith(0, "healthy\n"));
}

TEST_F(Filtered, KilledInitTakesItsSandboxAlong) {
  OnFilteredRung([] { KillAndExpectTheEnd({"palmshed-init"}); });
}

TEST_F(Filtered, KilledGuardTakesItsSandboxAlong) {
  OnFilteredRung([] { KillAndExpectTheEnd({"palmshed-guard"}); });
}

TEST_F(Filtered, KilledSupervisorTakesItsSandboxesAlong) {
  OnFilteredRung([] { KillAndExpectTheEnd({"palmshed-superv"}); });
}

TEST_F(Filtered, WhatLosesInitAndGuardEndsWithTheEngine) {
  OnFilteredRung([] {
    const TempDir root;
    std::optional<Engine> engine = MakeEngine(root);
    std::optional<Sandbox> sandbox = MakeSandboxIn(*engine);
    const Running escaped(*sandbox, {"daemon", "wait"});
    const pid_t init = DescendantCalled("palmshed-init");
    const pid_t guard = DescendantCalled("palmshed-guard");
    ASSERT_EQ(::kill(guard, SIGSTOP), 0);  // Else it could be faster than the second kill.
    ASSERT_EQ(::kill(init, SIGKILL), 0);
    ASSERT_EQ(::kill(guard, SIGKILL), 0);
    EXPECT_THAT(Must(escaped.execution->Wait()), EndedBy(Cause::kBackendLost));
    EXPECT_FALSE(escaped.processes().empty()) << "the control: nobody else ends them";
    sandbox.reset();
    engine.reset();
    EXPECT_TRUE(escaped.gone());
  });
}

TEST_F(Filtered, OptingOutOfTheFileViewIsRefusedWithARemedy) {
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    for (const Network network : {Network::kDisabled, Network::kAllow}) {
      const auto refused = engine.CreateSandbox({.network = network,
                                                 .os_filesystem_isolation = false,
                                                 .degraded = {"proc", "groups", "hostLoopback"}});
      EXPECT_THAT(refused, FailsWith(ErrorCode::kUnsupported));
      EXPECT_EQ(refused.error().field, "osFilesystemIsolation");
      EXPECT_THAT(refused.error().remedy, Not(IsEmpty()));
    }
    EXPECT_TRUE(engine.CreateSandbox());
  });
}

// C006
TEST_F(Filtered, WhatTakesAViewOfItsOwnIsRefusedWithARemedy) {
  OnFilteredRung([] {
    const TempDir root, project;
    Engine engine = MakeEngine(root);
    const Control lacking = Must(engine.GetCapabilities()).controls.front();
    ASSERT_EQ(lacking.name, "userNamespaces");
    const SandboxOptions cases[] = {
        {.mounts = {{.source = project.path(), .target = "/data"}}, .degraded = {"groups"}},
        {.disk_quota = 8_MiB, .storage = Storage::kMemory},
        {.disk_quota = 8_MiB, .storage = Storage::kLoop}};
    for (const SandboxOptions& options : cases) {
      const auto refused = engine.CreateSandbox(options);
      ASSERT_THAT(refused, FailsWith(ErrorCode::kUnsupported));
      const Error& error = refused.error();
      EXPECT_EQ(error.field, options.mounts.empty() ? "storage" : "mounts");
      EXPECT_THAT(error.message, HasSubstr(lacking.detail)) << "what is missing";
      EXPECT_EQ(error.remedy, lacking.remedy) << "how to get it";
      EXPECT_THAT(error.remedy, Not(IsEmpty()));
    }
    EXPECT_TRUE(engine.CreateSandbox({.disk_quota = 8_MiB})) << "the control: without";
  });
}

// Signals that are not held inside would reach everything of this user.
TEST_F(Filtered, PretendedScopeIsNotBelieved) {
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    EXPECT_TRUE(engine.CreateSandbox()) << "the control";
  });
  OnFilteredRung([] {
    ASSERT_TRUE(PretendLandlock());
    const TempDir root;
    Engine engine = MakeEngine(root);
    const auto refused = engine.CreateSandbox();
    ASSERT_THAT(refused, FailsWith(ErrorCode::kUnsupported));
    EXPECT_EQ(refused.error().op, "signal_scope");
    EXPECT_THAT(refused.error().remedy, Not(IsEmpty()));
  });
}

class RootWithoutUserNamespaces : public KernelTest {
 protected:
  void SetUp() override { PALMSHED_SKIP_UNLESS(::geteuid() == 0, "needs root"); }
};

TEST_F(RootWithoutUserNamespaces, UsesTheOtherNamespaces) {
  InForkedProcess([] {
    ASSERT_TRUE(RefuseUserNamespaces());
    ASSERT_NE(RunOnHost({ProbePath(), "call", "clone-user"}, As::kSelf).exit_code, kReached);
    const TempDir root(0755), project(0755);
    const std::string canary = project.AddFile("secret.txt", "canary");
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    EXPECT_EQ(Must(sandbox.capabilities()).filesystem_view, "private");
    EXPECT_THAT(ExecShell(sandbox, "pwd; test $(id -u) -ge 1000 && echo ordinary"),
                ExitedWith(0, "/workspace\nordinary\n"));
    // Each has a uid of its own, and its name.
    Sandbox other = MakeSandboxIn(engine);
    for (Sandbox* one : {&sandbox, &other}) {
      EXPECT_THAT(ExecShell(*one,
                            "id -un; id -gn; echo ~sandbox; ls -l /dev/shm; "
                            "grep -c $(id -u) /etc/passwd /etc/group; "
                            "echo x >>own && chmod 777 own && echo open; "
                            "for f in passwd group; do (echo x >>/etc/$f) 2>/dev/null || "
                            "chmod 777 /etc/$f 2>/dev/null || echo closed; done"),
                  ExitedWith(0,
                             "sandbox\nsandbox\n/workspace\ntotal 0\n/etc/passwd:1\n"
                             "/etc/group:1\nopen\nclosed\nclosed\n"));
    }
    ExpectOnlyOutside(sandbox, {"read", canary});
    const auto tcp = HostListener::Tcp();
    ExpectOnlyOutside(sandbox, {"tcp", "127.0.0.1", tcp->where()});
    const Running escaped(sandbox, {"daemon", "wait"});
    Must(sandbox.Destroy());
    EXPECT_THAT(escaped.processes(), IsEmpty());
  });
}

TEST_F(Filtered, PortsAreTheHostsAndAreNotWaitedFor) {
  OnFilteredRung([] {
    const TempDir root;
    Engine engine = MakeEngine(root);
    Sandbox sandbox = MakeSandboxIn(engine);
    EXPECT_THAT(sandbox.WaitForPort(80, std::chrono::seconds(30)),
                FailsWith(ErrorCode::kUnsupported));
  });
}

}  // namespace
}  // namespace palmshed::tests
