// For tests of control groups: a child that waits in the leaf for what to do, as the armed child of
// a sandbox does.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// The tree of this host; null with a reason to skip.
inline std::unique_ptr<CgroupTree> HostTree(std::string& why) {
  NoCgroups missing;
  auto tree = FindCgroupTree(missing);
  if (!tree) why = tree.error().message;
  return tree ? std::move(*tree) : nullptr;
}

/// Runs `body` in a child once told to; its value is the exit status. It is signalled by a pidfd
/// alone: kill(2) with a number that has become -1 ends every process of the machine.
class WaitingChild {
 public:
  explicit WaitingChild(const std::function<int()>& body) {
    auto pipe = sys::Pipe();
    EXPECT_TRUE(pipe);
    go_ = std::move(pipe->second);
    pid_ = ::fork();
    if (pid_ == 0) {
      go_.reset();
      char told = 0;
      const ssize_t n = ::read(pipe->first.get(), &told, 1);
      ::_exit(n == 1 ? body() : 125);
    }
    EXPECT_GT(pid_, 0);
    auto pidfd = sys::PidfdOpen(pid_);
    EXPECT_TRUE(pidfd);
    if (pidfd) pidfd_ = std::move(*pidfd);
  }
  ~WaitingChild() {
    if (waited_) return;
    Kill();
    (void)Wait();
  }
  WaitingChild(const WaitingChild&) = delete;
  WaitingChild& operator=(const WaitingChild&) = delete;

  pid_t pid() const { return pid_; }
  void Go() const { EXPECT_EQ(::write(go_.get(), "g", 1), 1); }
  /// Nothing, once it has been waited for. Any thread.
  void Kill() const { (void)sys::PidfdSendSignal(pidfd_.get(), SIGKILL); }
  /// How it ended.
  siginfo_t Wait() {
    siginfo_t end{};
    waited_ = true;
    EXPECT_EQ(::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &end, WEXITED), 0);
    return end;
  }

 private:
  UniqueFd go_;
  UniqueFd pidfd_;
  pid_t pid_ = -1;
  bool waited_ = false;
};

inline bool Killed(const siginfo_t& end) {
  return end.si_code == CLD_KILLED && end.si_status == SIGKILL;
}
inline bool ExitedWith(const siginfo_t& end, int code) {
  return end.si_code == CLD_EXITED && end.si_status == code;
}

// What children do. None of it allocates: they are forked from a process with threads.

/// Fills so much memory; 0, or 1 when there was none to be had.
inline int UseMemory(std::size_t mebibytes) {
  const std::size_t size = mebibytes << 20;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  std::memset(memory, 1, size);
  return 0;
}

/// The same in a file that is only in memory, which stays open in `fd`.
inline int UseTmpfs(BorrowedFd fd, std::size_t mebibytes) {
  const std::size_t size = mebibytes << 20;
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) return 1;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return 1;
  std::memset(memory, 1, size);
  return 0;
}

/// Writes a file of so much to disk, reads it again and deletes it.
inline int UseFile(const char* path, std::size_t mebibytes) {
  static std::array<char, 1 << 20> chunk;
  const int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return 1;
  (void)::unlink(path);
  for (std::size_t i = 0; i < mebibytes; ++i) {
    if (::write(fd, chunk.data(), chunk.size()) != static_cast<ssize_t>(chunk.size())) return 2;
  }
  if (::lseek(fd, 0, SEEK_SET) != 0) return 3;
  while (true) {
    const ssize_t n = ::read(fd, chunk.data(), chunk.size());
    if (n <= 0) return n == 0 ? 0 : 4;
  }
}

/// Uses a processor for so much CPU time from now on.
inline int Burn(long milliseconds) {
  const auto used = [] {
    timespec now{};
    (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
  };
  const auto start = used();
  while (used() - start < milliseconds) {
  }
  return 0;
}

/// Forks until it is refused, at most `most` times; how often it worked. The children wait for
/// `until` to be closed.
inline int ForkUntilRefused(int most, BorrowedFd until) {
  int forked = 0;
  for (; forked < most; ++forked) {
    const pid_t pid = ::fork();
    if (pid < 0) break;
    if (pid > 0) continue;
    char unused = 0;
    (void)!::read(until, &unused, 1);
    ::_exit(0);
  }
  return forked;
}

/// Two forks, so that the worker is nobody's child; returns when the worker is done.
inline int BurnInOrphan(long milliseconds) {
  std::array<int, 2> done{};
  if (::pipe2(done.data(), O_CLOEXEC) != 0) return 1;
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) {
    if (::fork() == 0) ::_exit(Burn(milliseconds));
    ::_exit(0);
  }
  (void)::close(done[1]);
  (void)::waitpid(child, nullptr, 0);
  char unused = 0;
  return ::read(done[0], &unused, 1) == 0 ? 0 : 1;
}

}  // namespace palmshed::kernel
