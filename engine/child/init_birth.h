// The sandbox's init between clone and exec: a child in its maker's memory, on a stack of its own,
// that makes only raw system calls. Its maker is the launcher or, for a direct sandbox, the engine.
#pragma once

#include <cstdint>
#include <type_traits>

#include "child/atomic.h"
#include "child/failure.h"

namespace palmshed::child {

struct InitPlan {
  const char* role;    ///< argv[1] of the helper.
  const char* option;  ///< argv[2], or null.
  int maker;           ///< A pidfd of the maker; -1 where the pid namespace ends with it anyway.
  int fds[3];          ///< Become the helper's 3, 4 and 5,
  const int* more = nullptr;     ///< and these 6 and on.
  std::uint32_t more_count = 0;  ///< At most kMaxHostMounts.
  int helper;                    ///< The helper program.
  unsigned long namespaces;  ///< CLONE_NEW...: of its own, made while its maps are being written.
  bool late_identity;        ///< The helper takes it: a change of credentials in a maker's memory
                             ///< makes the maker itself undumpable (prctl(2), PR_SET_DUMPABLE).
  bool drop_groups;
  std::uint32_t id;  ///< uid and gid, as its namespace counts them.
};
static_assert(std::is_trivially_copyable_v<InitPlan>);

/// Shared by the maker and the child, so it stays where it is until AwaitInit has returned.
struct InitBirth {
  InitPlan plan;
  int pid;
  int pidfd;         ///< Close-on-exec; the maker's to close.
  FutexWord mapped;  ///< Set by the maker when the child has its maps.
  FutexWord alive;   ///< Cleared by the kernel at the child's exec or end.
  Failure failure;   ///< Written by the child.
  alignas(16) char stack[16 * 1024];
};

/// clone(2) with `namespaces` (CLONE_NEW...). On failure there is no child. Of the plan, `maker`
/// and `namespaces` must be known by then. The child shares the maker's descriptors until it is
/// released, so that those of the plan may be opened later.
Failure CloneInit(InitBirth* birth, unsigned long namespaces);

/// Lets the child, which has its maps, become the helper.
void ReleaseInit(InitBirth* birth);

/// Sleeps until the child has; its failure if it could not, in which case it has been reaped and
/// the pidfd closed.
Failure AwaitInit(InitBirth* birth);

/// Kills and reaps the child, and closes the pidfd.
void AbandonInit(InitBirth* birth);

/// Becomes uid and gid `id`, with those capabilities alone that init needs to make its sandbox.
Failure TakeIdentity(bool drop_groups, std::uint32_t id);

/// Maps kInsideUid to `outside` in /proc/<pid>/<name>; `proc` is a directory of procfs, `name` is
/// uid_map or gid_map (user_namespaces(7)). 0 or a negative errno.
long WriteIdMap(int proc, std::uint32_t pid, const char* name, std::uint32_t outside);

/// What an ordinary user must do before it may write a gid map.
long DenySetgroups(int proc, std::uint32_t pid);

}  // namespace palmshed::child
