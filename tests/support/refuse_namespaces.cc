#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

#include "support/process.h"

namespace palmshed::tests {
namespace {

constexpr unsigned kNewNamespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                                    CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

constexpr unsigned Refusal(int error) { return SECCOMP_RET_ERRNO | static_cast<unsigned>(error); }

sock_filter Kept(unsigned value) { return BPF_STMT(BPF_RET | BPF_K, value); }
sock_filter Load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
}
sock_filter SkipUnlessEqual(unsigned value, unsigned char otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, otherwise);
}

}  // namespace

bool RefuseNamespaces() {
  sock_filter program[] = {
      Load(offsetof(seccomp_data, nr)),
      SkipUnlessEqual(SYS_unshare, 1),
      Kept(Refusal(EPERM)),
      SkipUnlessEqual(SYS_clone3, 1),
      Kept(Refusal(ENOSYS)),
      SkipUnlessEqual(SYS_clone, 3),
      Load(offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1),
      Kept(Refusal(EPERM)),
      Kept(SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{.len = static_cast<unsigned short>(std::size(program)), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

}  // namespace palmshed::tests
