// The sandbox's init between clone and exec: a child in the launcher's memory, on a stack of its
// own, that makes only raw system calls.
#pragma once

#include <cstdint>
#include <type_traits>

#include "child/atomic.h"
#include "child/failure.h"

namespace palmshed::child {

struct InitPlan {
  int socket;
  int workspace_tree;
  int tmp_tree;
  int helper;
  bool drop_groups;
  std::uint32_t id;  ///< uid and gid, as its namespace counts them.
};
static_assert(std::is_trivially_copyable_v<InitPlan>);

/// Shared by the launcher and the child.
struct InitBirth {
  InitPlan plan;
  FutexWord mapped;  ///< Set by the launcher when the child has its maps.
  FutexWord alive;   ///< Cleared by the kernel at the child's exec or end.
  Failure failure;   ///< Written by the child.
  alignas(16) char stack[16 * 1024];
};

/// Runs in the child; does not return. `birth` is an InitBirth.
void BecomeInitInChild(void* birth);

}  // namespace palmshed::child
