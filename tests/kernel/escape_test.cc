// The file view: nothing of the host is in it beyond a read-only runtime. Every refusal here is of
// a file that an ordinary user of the host may read, so that no permission bit does the work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSubsetOf;
using ::testing::Not;

constexpr char kSecret[] = "palmshed-canary-5b1d";

class Escape : public KernelTest {
 protected:
  /// A file of another project that every user of this host may read.
  std::string canary() const { return canary_; }
  const TempDir& project() const { return project_; }

 private:
  const TempDir project_{0755};
  const std::string canary_ = project_.AddFile("other-project/secret.txt", kSecret);
};

// E1
TEST_F(Escape, FilesOfOtherProjectsAreAbsent) {
  Sandbox sandbox = MakeSandbox();
  ExpectOnlyOutside(sandbox, {"read", canary()});
  ExpectOnlyOutside(sandbox, {"list", project().path()});
}

// E1
TEST_F(Escape, HostConfigurationIsAbsent) {
  Sandbox sandbox = MakeSandbox();
  for (const char* path : {"/etc/fstab", "/etc/login.defs", "/etc/pam.d/login", "/etc/crontab"}) {
    if (::access(path, R_OK) == 0) ExpectOnlyOutside(sandbox, {"read", path});
  }
  // Directories may be there, as mount points of runtimes, but no file that is not in one of those.
  const std::string search =
      "find /var /root /home /run /boot /srv /mnt -maxdepth 2 ! -type d ! -path /var/run "
      "! -path /var/tmp ! -path /var/lock ! -path '*/.rustup/settings.toml' 2>/dev/null";
  EXPECT_NE(RunOnHost({"sh", "-c", search}, As::kSelf).out, "");
  EXPECT_EQ(ExecShell(sandbox, search).out.bytes, "");
}

// E1
TEST_F(Escape, PasswordFileNamesNobodyOfTheHost) {
  Sandbox sandbox = MakeSandbox();
  ASSERT_THAT(Slurp("/etc/passwd"), HasSubstr("daemon:"));
  const ExecResult run = Exec(sandbox, {"./probe", "read", "/etc/passwd"});
  EXPECT_EQ(run.exit_code, kReached);
  EXPECT_THAT(run.out.bytes, HasSubstr("sandbox:x:1000:"));
  EXPECT_THAT(run.out.bytes, Not(HasSubstr("daemon:")));
}

// E1
TEST_F(Escape, HomeDirectoryIsTheWorkspace) {
  const TempDir home(0755);
  home.AddFile(".ssh/id_ed25519", kSecret);
  Sandbox sandbox = MakeSandbox();
  ExpectOnlyOutside(sandbox, {"read", home.path() + "/.ssh/id_ed25519"});
  const ExecResult run = ExecShell(sandbox, "echo $HOME; cd ~ && pwd");
  EXPECT_THAT(run, ExitedWith(0, "/workspace\n/workspace\n"));
}

// E2
TEST_F(Escape, LinkToAHostFileLeadsNowhere) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult run = ExecShell(
      sandbox, "echo mine > own; ln -s own inside; ln -s " + canary() + " outside; cat inside");
  EXPECT_THAT(run, ExitedWith(0, "mine\n"));
  EXPECT_EQ(Exec(sandbox, {"./probe", "read", "outside"}).exit_code, kRefused);
  EXPECT_THAT(sandbox.ReadFile("outside"), FailsWith(ErrorCode::kFsError));
}

// E3
TEST_F(Escape, HostFileCannotBeHardLinkedIntoTheWorkspace) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_EQ(Exec(sandbox, {"./probe", "link", "probe", "linked"}).exit_code, kReached);
  EXPECT_EQ(Exec(sandbox, {"./probe", "link", "/usr/bin/env", "env"}).exit_code, kRefused);
  EXPECT_EQ(Exec(sandbox, {"./probe", "link", canary(), "canary"}).exit_code, kRefused);
}

// E5
TEST_F(Escape, ProcLeadsToNoHostDirectory) {
  Sandbox sandbox = MakeSandbox();
  sandbox
      .WriteFile("walk.sh",
                 "for p in /proc/[0-9]* /proc/self /proc/thread-self /proc/self/task/*; do\n"
                 "  cat $p/root" +
                     canary() + " $p/cwd" + canary() +
                     "\n"
                     "  for f in $p/fd/*; do cat $f" +
                     canary() +
                     "; done\n"
                     "done 2>/dev/null; true\n")
      .value();
  const HostRun outside = RunOnHost({"cat", "/proc/self/root" + canary()});
  EXPECT_THAT(outside.out, HasSubstr(kSecret));
  EXPECT_THAT(ExecShell(sandbox, "sh walk.sh"), ExitedWith(0, ""));
}

// E6
TEST_F(Escape, DotsDoNotLeadOutOfTheView) {
  Sandbox sandbox = MakeSandbox();
  const std::string up = "../../../../../../../..";
  EXPECT_EQ(RunOnHost({ProbePath(), "read", "/usr/" + up + canary()}).exit_code, kReached);
  EXPECT_EQ(Exec(sandbox, {"./probe", "read", up + canary()}).exit_code, kRefused);
  EXPECT_THAT(sandbox.ReadFile(up + canary()), FailsWith(ErrorCode::kFsError));
  Must(sandbox.MakeDirectory("a"));
  EXPECT_THAT(sandbox.ReadFile("a/../../../etc/passwd"), FailsWith(ErrorCode::kFsError));
  EXPECT_THAT(sandbox.ReadFile(canary()), FailsWith(ErrorCode::kFsError));
  EXPECT_THAT(sandbox.WriteFile("../up", "x"), FailsWith(ErrorCode::kFsError));
}

// E7
TEST_F(Escape, DescendantsSeeNoMoreThanTheirParent) {
  Sandbox sandbox = MakeSandbox();
  const std::string nested = "sh -c 'setsid sh -c \"cat " + canary() + "\"'";
  EXPECT_THAT(RunOnHost({"sh", "-c", nested}).out, HasSubstr(kSecret));
  const ExecResult run = ExecShell(sandbox, "( " + nested + " ) & wait");
  EXPECT_THAT(run.out.bytes, Not(HasSubstr(kSecret)));
}

// E8
TEST_F(Escape, NothingCanBeRenamedOutOfTheWorkspace) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "mkdir d; echo 1 > f; mv f d/g; cat d/g"), ExitedWith(0, "1\n"));
  for (const char* target : {"/usr/palmshed-x", "/etc/palmshed-x", "/palmshed-x", "/dev/x"}) {
    EXPECT_EQ(Exec(sandbox, {"./probe", "rename", "d/g", target}).exit_code, kRefused) << target;
  }
  EXPECT_EQ(Exec(sandbox, {"./probe", "rename", "/usr/bin/env", "env"}).exit_code, kRefused);
  EXPECT_EQ(Exec(sandbox, {"./probe", "rename", "/workspace", "/elsewhere"}).exit_code, kRefused);
}

// E9
TEST_F(Escape, OnlyHarmlessDevicesExist) {
  Sandbox sandbox = MakeSandbox();
  std::istringstream listing(Exec(sandbox, {"./probe", "list", "/dev"}).out.bytes);
  std::set<std::string> names;
  for (std::string name; std::getline(listing, name);) names.insert(name);
  const std::set<std::string> harmless = {
      ".",   "..",  "null", "zero",  "full",   "random", "urandom", "tty",    "ptmx",
      "pts", "shm", "fd",   "stdin", "stdout", "stderr", "mqueue",  "console"};
  EXPECT_THAT(names, IsSubsetOf(harmless));
  EXPECT_TRUE(names.contains("null") && names.contains("urandom"));
  EXPECT_EQ(Exec(sandbox, {"./probe", "mknod", "disk"}).exit_code, kRefused);
  EXPECT_THAT(ExecShell(sandbox, "echo x > /dev/null && head -c4 /dev/zero | wc -c"),
              ExitedWith(0, "4\n"));
}

TEST_F(Escape, RuntimeCannotBeWritten) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(Exec(sandbox, {"./probe", "mount-flags", "/workspace"}).out.bytes,
              HasSubstr("rw nosuid nodev"));
  for (const char* path : {"/usr", "/usr/bin", "/etc", "/"}) {
    EXPECT_THAT(Exec(sandbox, {"./probe", "mount-flags", path}).out.bytes, HasSubstr("ro")) << path;
  }
  EXPECT_EQ(Exec(sandbox, {"./probe", "open-for-writing", "/usr/bin/env"}).exit_code, kRefused);
  EXPECT_EQ(Exec(sandbox, {"./probe", "create", "/usr/bin/palmshed-x"}).exit_code, kRefused);
  EXPECT_EQ(Exec(sandbox, {"./probe", "create", "/workspace/x"}).exit_code, kReached);
  EXPECT_EQ(Exec(sandbox, {"./probe", "create", "/tmp/x"}).exit_code, kReached);
}

TEST_F(Escape, NoMountIsWritableButTheSandboxsOwn) {
  Sandbox sandbox = MakeSandbox();
  std::istringstream mounts(ExecShell(sandbox, "cat /proc/self/mountinfo").out.bytes);
  int writable = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, target, options;
    words >> id >> parent >> device >> root >> target >> options;
    const bool own = target.starts_with("/workspace") || target.starts_with("/tmp") ||
                     target.starts_with("/dev") || target.starts_with("/proc");
    if (options.starts_with("rw")) {
      ++writable;
      EXPECT_TRUE(own) << line;
    }
  }
  EXPECT_GT(writable, 0);
}

struct Interpreter {
  const char* program;
  const char* option;
  const char* script;  ///< Reads its first argument.
};

void PrintTo(const Interpreter& interpreter, std::ostream* out) { *out << interpreter.program; }

class EscapeBy : public KernelTest, public ::testing::WithParamInterface<Interpreter> {};

// E10
TEST_P(EscapeBy, AbsolutePathReadsNoHostFile) {
  PALMSHED_SKIP_UNLESS(OnPath(GetParam().program), "no such interpreter on this host");
  const TempDir project(0755);
  const std::string canary = project.AddFile("secret.txt", kSecret);
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.WriteFile("secret.txt", kSecret));
  const auto command = [](const std::string& path) {
    return std::vector<std::string>{GetParam().program, GetParam().option, GetParam().script, path};
  };
  const auto shifted = [&](const std::string& path) {
    auto argv = command(path);
    // These take the first argument after the script as its name.
    if (std::string(argv[0]).ends_with("sh")) argv.insert(argv.begin() + 3, "script");
    return argv;
  };
  EXPECT_THAT(Exec(sandbox, shifted("/workspace/secret.txt")).out.bytes, HasSubstr(kSecret));
  EXPECT_THAT(RunOnHost(shifted(canary), As::kSelf).out, HasSubstr(kSecret));
  const ExecResult run = Exec(sandbox, shifted(canary));
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.out.bytes + run.err.bytes, Not(HasSubstr(kSecret)));
}

INSTANTIATE_TEST_SUITE_P(
    Interpreters, EscapeBy,
    ::testing::Values(
        Interpreter{"sh", "-c", "cat \"$1\""}, Interpreter{"bash", "-c", "cat < \"$1\""},
        Interpreter{"python3", "-c", "import sys; print(open(sys.argv[1]).read())"},
        Interpreter{"node", "-e",
                    "console.log(require('fs').readFileSync(process.argv[1],'utf8'))"},
        Interpreter{"perl", "-e", "open(F, '<', $ARGV[0]) or exit 3; print <F>"},
        Interpreter{"awk", "--", "BEGIN { if ((getline line < ARGV[1]) < 1) exit 3; print line }"}),
    [](const auto& test) { return std::string(test.param.program); });

}  // namespace
}  // namespace palmshed::tests
