#include "support/filtered_rung.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>

#include "support/process.h"
#include "support/residue.h"

namespace palmshed::tests {
namespace {

constexpr unsigned kLandlockVersion = 1;
constexpr long kFirstVersionWithScopes = 6;

bool Load(std::span<sock_filter> program) {
  sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

}  // namespace

bool HasLandlockScopes() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kLandlockVersion) >=
         kFirstVersionWithScopes;
}

void OnFilteredRung(const std::function<void()>& body) {
  AsOrdinaryUser([&] {
    AdoptOrphans();
    ASSERT_TRUE(RefuseNamespaces());
    body();
  });
}

bool RefuseUserNamespaces() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return Load(program);
}

bool PretendLandlock() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_restrict_self, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return Load(program);
}

pid_t DescendantCalled(const std::string& name) {
  for (const std::string& process : Descendants()) {
    const std::size_t space = process.find(' ');
    if (process.substr(space + 1) == name) return std::atoi(process.c_str());
  }
  return 0;
}

}  // namespace palmshed::tests
