// For tests: confines the calling process by Landlock.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernel/landlock.h"

namespace palmshed::kernel {

struct PathRule {
  std::string path;
  std::uint64_t access;
};

/// False with errno. Not to be undone: call it in a forked process.
inline bool RestrictSelf(const LandlockRights& handled, const std::vector<PathRule>& rules) {
  struct {
    std::uint64_t fs, net, scoped;
  } const attributes{handled.fs, handled.net, handled.scoped};
  // A kernel takes no more of the structure than it knows, unless the rest is zero.
  const long ruleset =
      syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, std::uint32_t{0});
  if (ruleset < 0) return false;
  for (const PathRule& rule : rules) {
    struct [[gnu::packed]] {
      std::uint64_t access;
      std::int32_t parent;
    } const beneath{rule.access, open(rule.path.c_str(), O_PATH | O_CLOEXEC)};
    const long added = syscall(SYS_landlock_add_rule, static_cast<int>(ruleset), 1, &beneath, 0);
    close(beneath.parent);
    if (added < 0) return false;
  }
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_landlock_restrict_self, static_cast<int>(ruleset), 0) == 0;
}

}  // namespace palmshed::kernel
