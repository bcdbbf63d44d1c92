// What the host has no more of, or its administrator allows no more of: a clear error that names
// it, and the engine works again as soon as there is some.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"
#include "support/must.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class HostLimits : public KernelTest {};

void ExpectWorks(Engine& engine) {
  auto sandbox = engine.CreateSandbox();
  ASSERT_TRUE(sandbox) << ::testing::PrintToString(sandbox.error());
  EXPECT_THAT(ExecShell(*sandbox, "echo x > f; cat f"), ExitedWith(0, "x\n"));
  Must(sandbox->Destroy());
}

bool Write(const std::string& file, std::string_view text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

/// A user namespace of this process's own, whose settings are not the host's. In it this process is
/// an ordinary user that may change them. What an engine keeps goes to `root`.
bool EnterUserNamespace(const TempDir& root) {
  ::setenv("XDG_RUNTIME_DIR", root.path().c_str(), 1);
  const std::string uid = std::to_string(::geteuid()), gid = std::to_string(::getegid());
  return ::unshare(CLONE_NEWUSER) == 0 && Write("/proc/self/setgroups", "deny") &&
         Write("/proc/self/uid_map", "1000 " + uid + " 1") &&
         Write("/proc/self/gid_map", "1000 " + gid + " 1");
}

class NamespaceLimits : public HostLimits, public ::testing::WithParamInterface<const char*> {};

/// Either what is weaker without says so, or there is nothing and the error says how to get it.
void ExpectNamed(Result<Sandbox> made, const std::string& setting, bool made_ahead) {
  if (made) {
    const std::string view = Must(made->capabilities()).filesystem_view;
    EXPECT_TRUE(view == "filtered" || made_ahead) << view;
    return Must(made->Destroy());
  }
  const Error& error = made.error();
  EXPECT_THAT(error.code, AnyOf(ErrorCode::kUnsupported, ErrorCode::kOverloaded));
  EXPECT_THAT(error.message, HasSubstr(setting)) << ::testing::PrintToString(error);
  EXPECT_THAT(error.remedy, HasSubstr("sysctl -w " + setting)) << ::testing::PrintToString(error);
}

TEST_P(NamespaceLimits, AreNamedAndRaisingThemHelps) {
  InForkedProcess([] {
    const TempDir root, home;
    const std::string name = std::string("max_") + GetParam() + "_namespaces";
    const std::string file = "/proc/sys/user/" + name;
    PALMSHED_SKIP_UNLESS(EnterUserNamespace(home) && Write(file, "100"), "no user namespace");
    Engine engine = MakeEngine(root);
    ExpectWorks(engine);  // The control.
    // With what there is for the next sandbox, or is not.
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(Write(file, "0"));
      for (int attempt = 0; attempt < 3; ++attempt) {
        // A launcher has one network namespace in stock.
        const bool made_ahead = name == "max_net_namespaces" && attempt == 0;
        ExpectNamed(engine.CreateSandbox(), "user." + name, made_ahead);
      }
      ASSERT_TRUE(Write(file, "100"));
      ExpectWorks(engine);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Of, NamespaceLimits,
                         ::testing::Values("user", "mnt", "net", "pid", "ipc", "uts", "cgroup"),
                         [](const auto& limit) { return std::string(limit.param); });

/// A file system that is full.
class SmallDisk {
 public:
  /// On a directory of this process's own mount namespace. Throws where that cannot be had.
  explicit SmallDisk(const std::string& where) : where_(where) {
    const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("palmshed", where_.c_str(), "tmpfs", 0, "size=2m,mode=0755") == 0;
    if (!mounted) throw std::runtime_error("no small disk");
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() { (void)::umount2(where_.c_str(), MNT_DETACH); }  // Else the directory stays.
  void Fill() const {
    const std::string block(4096, 'x');
    std::ofstream out(where_ + "/fill");
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void Empty() const { (void)::unlink((where_ + "/fill").c_str()); }

 private:
  std::string where_;
};

TEST_F(HostLimits, FullDiskIsAClearErrorAndRoomHelps) {
  InForkedProcess([] {
    const TempDir root, home;
    PALMSHED_SKIP_UNLESS(::geteuid() == 0 || EnterUserNamespace(home), "no user namespace");
    const SmallDisk disk(root.path());
    Engine engine = MakeEngine(root);
    ExpectWorks(engine);
    Sandbox before = Must(engine.CreateSandbox());
    disk.Fill();
    const auto written = before.WriteFile("f", std::string(8192, 'x'));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::kOverloaded) << written.error().message;
    EXPECT_EQ(written.error().sys_errno, ENOSPC);
    for (int i = 0; i < 3; ++i) {
      const auto made = engine.CreateSandbox();
      if (made) continue;  // A directory takes no block of a tmpfs.
      EXPECT_EQ(made.error().code, ErrorCode::kOverloaded) << made.error().message;
      EXPECT_EQ(made.error().sys_errno, ENOSPC) << made.error().message;
    }
    // Nothing half-written stays.
    EXPECT_THAT(Must(before.List(".")), IsEmpty());
    disk.Empty();
    Must(before.WriteFile("f", std::string(8192, 'x')));
    Must(before.Destroy());
    ExpectWorks(engine);
  });
}

rlim_t LimitProcesses(rlim_t most) {
  rlimit limit{};
  EXPECT_EQ(::getrlimit(RLIMIT_NPROC, &limit), 0);
  const rlim_t before = std::exchange(limit.rlim_cur, most);
  EXPECT_EQ(::setrlimit(RLIMIT_NPROC, &limit), 0);
  return before;
}

void ExpectOverloaded(const Error& error) {
  EXPECT_EQ(error.code, ErrorCode::kOverloaded) << ::testing::PrintToString(error);
  EXPECT_EQ(error.sys_errno, EAGAIN) << ::testing::PrintToString(error);
  EXPECT_THAT(error.op, Not(IsEmpty())) << ::testing::PrintToString(error);
}

// An ordinary user's: root is not held by it.
TEST_F(HostLimits, TooManyProcessesOfTheUserAreAClearErrorAndFewerHelp) {
  AsOrdinaryUser([] {
    const TempDir root;
    {
      Engine engine = MakeEngine(root);
      ExpectWorks(engine);
      const rlim_t before = LimitProcesses(1);
      for (int i = 0; i < 3; ++i) {
        const auto made = engine.CreateSandbox();
        ASSERT_FALSE(made);
        ExpectOverloaded(made.error());
      }
      (void)LimitProcesses(before);
      ExpectWorks(engine);
    }
    const rlim_t before = LimitProcesses(1);
    const auto made = Engine::Create({.workspace_root = root.path()});
    ASSERT_FALSE(made);
    ExpectOverloaded(made.error());
    (void)LimitProcesses(before);
  });
}

}  // namespace
}  // namespace palmshed::tests
