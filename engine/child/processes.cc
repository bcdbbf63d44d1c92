#include "child/processes.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>

#include "child/kernel_abi.h"
#include "child/pool.h"
#include "child/raw.h"
#include "child/text.h"

namespace palmshed::child {
namespace {

constexpr std::uint32_t kPidLimit = 4U << 20;  // PID_MAX_LIMIT of 64-bit kernels.

void EndInChild(void*) { ExitGroup(0); }

// Numbers are given out in a circle (pid_namespaces(7)), so until the first round is complete a new
// child has the highest of all. After that only the limit is certain.
std::uint32_t HighestPid(Pool* pool) {
  alignas(16) char stack[1024];
  const std::uint32_t before = pool->highest_pid.Load();
  const long newest = PalmshedCloneOnStack(CLONE_VM | CLONE_VFORK, stack + sizeof stack, nullptr,
                                           nullptr, EndInChild, nullptr);
  if (newest < 0) return kPidLimit;
  while (Call(SYS_wait4, newest, nullptr, __WALL, nullptr) == -EINTR) {
  }
  const auto number = static_cast<std::uint32_t>(newest);
  const std::uint32_t highest = number < before ? kPidLimit : number;
  if (highest > pool->highest_pid.Load()) pool->highest_pid.Store(highest);
  return highest;
}

bool Exists(int pid) { return Call(SYS_tgkill, pid, pid, 0) != -ESRCH; }

}  // namespace

ProcessWalk::ProcessWalk(Pool* pool) : pool_(pool) {
  if (pool->host_pids) {
    pool->proc_lock.Lock();
    directory_ = pool->proc_directory;
    (void)Call(SYS_lseek, directory_, 0, SEEK_SET);
    return;
  }
  const long directory =
      pool->proc ? OpenAt(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY) : long{-ENOENT};
  if (directory >= 0) {
    directory_ = static_cast<int>(directory);
  } else {
    last_ = HighestPid(pool);
  }
}

ProcessWalk::~ProcessWalk() {
  if (pool_->host_pids) {
    pool_->proc_lock.Unlock();
  } else if (directory_ >= 0) {
    Close(directory_);
  }
}

int ProcessWalk::Next() { return directory_ >= 0 ? NextInProc() : NextNumber(); }

int ProcessWalk::NextInProc() {
  for (;;) {
    if (at_ >= filled_) {
      filled_ = Call(SYS_getdents64, directory_, entries_, sizeof entries_);
      at_ = 0;
      if (filled_ <= 0) return 0;
    }
    const auto* const entry = reinterpret_cast<const DirectoryEntry*>(entries_ + at_);
    at_ += entry->record_length;
    const auto pid = static_cast<int>(ParseNumber(entry->name));
    if (pid > 1 && pid != pool_->self) return pid;
  }
}

int ProcessWalk::NextNumber() {
  while (number_ < last_) {
    ++number_;
    if (Exists(static_cast<int>(number_))) return static_cast<int>(number_);
  }
  return 0;
}

}  // namespace palmshed::child
