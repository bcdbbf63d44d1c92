// The system calls that are closed inside although any user of the host may make them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/process.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SystemCalls : public KernelTest {};

// C095
TEST_F(SystemCalls, NoNamespaceCanBeMade) {
  Sandbox sandbox = MakeSandbox();
  for (const char* call : {"unshare-user", "clone-user", "clone3-user"}) {
    ExpectOnlyOutside(sandbox, {"call", call});
  }
}

// C095
TEST_F(SystemCalls, MasksCannotBeLifted) {
  PALMSHED_SKIP_UNLESS(OnPath("unshare"), "no unshare on this host");
  Sandbox sandbox = MakeSandbox();
  const std::string command = "unshare -Urm sh -c 'mount -t tmpfs none /tmp && echo mounted'";
  EXPECT_THAT(RunOnHost({"sh", "-c", command}).out, HasSubstr("mounted"));
  EXPECT_THAT(ExecShell(sandbox, command).out.bytes, Not(HasSubstr("mounted")));
  for (const char* call :
       {"mount", "umount", "chroot", "sethostname", "setuid-root", "setgroups"}) {
    EXPECT_EQ(Exec(sandbox, {"./probe", "call", call}).exit_code, kRefused) << call;
  }
}

// C095
TEST_F(SystemCalls, KeyringsAreClosed) {
  Sandbox sandbox = MakeSandbox();
  ExpectOnlyOutside(sandbox, {"call", "add_key"});
  ExpectOnlyOutside(sandbox, {"call", "keyctl"});
}

// C080
TEST_F(SystemCalls, SideDoorsAreClosed) {
  Sandbox sandbox = MakeSandbox();
  for (const char* call : {"io_uring", "name_to_handle"}) {
    ExpectOnlyOutside(sandbox, {"call", call});
  }
  for (const char* call : {"int80-socket", "x32-getpid", "bpf", "tiocsti"}) {
    const ExecResult run = Exec(sandbox, {"./probe", "call", call});
    EXPECT_EQ(run.exit_code, kRefused) << call;
  }
}

TEST_F(SystemCalls, DebuggersWork) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(Exec(sandbox, {"./probe", "trace-child"}), ExitedWith(kReached, "OK\n"));
}

TEST_F(SystemCalls, StraceWorks) {
  PALMSHED_SKIP_UNLESS(OnPath("strace"), "no strace on this host");
  Sandbox sandbox = MakeSandbox();
  const ExecResult run = ExecShell(sandbox, "strace -f -e trace=execve /bin/sh -c '/bin/true'");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err.bytes, HasSubstr("execve(\"/bin/true\""));
}

}  // namespace
}  // namespace palmshed::tests
