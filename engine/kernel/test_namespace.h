// For tests: a pid namespace of its own with the processes of a test in it, as a sandbox has it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/unique_fd.h"

namespace palmshed::kernel {

/// What two processes tell each other by: bytes, one for each step.
class Steps {
 public:
  Steps() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
      read_.reset(ends[0]);
      write_.reset(ends[1]);
    }
  }
  void Done() const { (void)!::write(write_.get(), "x", 1); }
  /// False when nobody has said so within ten seconds.
  bool Await() const {
    char byte = 0;
    const auto readable = sys::WaitReadable(read_.get(), 10'000);
    return readable && *readable && ::read(read_.get(), &byte, 1) == 1;
  }

 private:
  UniqueFd read_;
  UniqueFd write_;
};

/// Init and its children, in user, pid, mount and IPC namespaces of their own; /proc and /dev/shm
/// are theirs. Each child waits for Go, makes a session and runs its body. Init adopts and reaps.
/// Going out of scope kills all.
class TestNamespace {
 public:
  using Body = std::function<int()>;

  /// Throws where there is no such thing to be had: a test without it must not go on.
  explicit TestNamespace(const std::vector<Body>& bodies) : go_(bodies.size()) {
    const pid_t outer = ::fork();
    if (outer == 0) RunOuter(bodies);
    if (outer < 0) throw std::runtime_error("fork");
    outer_.pid = outer;
    outer_.fd = *sys::PidfdOpen(outer);
    if (!ready_.Await()) {
      Stop();
      throw std::runtime_error("no namespaces to be had");
    }
    const std::vector<pid_t> inits = ChildrenOf(outer);
    if (inits.size() == 1) init_ = Open(inits.front());
    for (const pid_t child : ChildrenOf(init_.pid)) children_.push_back(Open(child));
    if (init_.pid <= 1 || children_.size() != bodies.size()) {
      Stop();
      throw std::runtime_error("not the processes that were made");
    }
  }
  ~TestNamespace() { Stop(); }
  TestNamespace(const TestNamespace&) = delete;
  TestNamespace& operator=(const TestNamespace&) = delete;

  pid_t init() const { return init_.pid; }
  /// On the host.
  pid_t child(std::size_t index) const { return children_.at(index).pid; }
  void KillChild(std::size_t index) const { Kill(children_.at(index)); }
  /// Kills all, and waits until init is dead.
  void KillInit() const {
    Kill(init_);
    EXPECT_TRUE(*sys::WaitReadable(init_.fd.get(), 10'000));
  }
  void Go(std::size_t index) const { go_.at(index).Done(); }
  /// Any child's or orphan's end; false when there was none within ten seconds.
  bool AwaitEnd() const { return ended_.Await(); }
  /// Of a file opened inside.
  UniqueFd OpenInside(const std::string& path) const {
    return UniqueFd(::open(("/proc/" + std::to_string(init_.pid) + "/root" + path).c_str(),
                           O_RDONLY | O_CLOEXEC));
  }

  static std::vector<pid_t> ChildrenOf(pid_t parent) {
    const std::string number = std::to_string(parent);
    std::ifstream file("/proc/" + number + "/task/" + number + "/children");
    std::vector<pid_t> children;
    for (pid_t child = 0; file >> child;) children.push_back(child);
    return children;
  }

 private:
  // Signals go by descriptor alone: a number that is wrong could be anybody's, or everybody's.
  struct Process {
    pid_t pid = 0;
    UniqueFd fd;
  };
  static Process Open(pid_t pid) {
    auto fd = sys::PidfdOpen(pid);
    return {.pid = pid, .fd = fd ? *std::move(fd) : UniqueFd()};
  }
  static void Kill(const Process& process) {
    if (process.fd.valid()) (void)sys::PidfdSendSignal(process.fd.get(), SIGKILL);
  }
  void Stop() const {
    Kill(init_);
    Kill(outer_);
    sys::Reap(outer_.fd.get());
  }

  static bool Write(const std::string& path, const std::string& text) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }

  void RunOuter(const std::vector<Body>& bodies) const {
    // As a sandbox of root's, whose uid is nobody else's: root himself is held to no limit.
    constexpr uid_t kUnused = 3'000'123;
    if (::getuid() == 0 && (::setresgid(kUnused, kUnused, kUnused) < 0 ||
                            ::setresuid(kUnused, kUnused, kUnused) < 0)) {
      ::_exit(1);
    }
    (void)::prctl(PR_SET_DUMPABLE, 1);
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string uid = std::to_string(::getuid());
    const std::string gid = std::to_string(::getgid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) < 0) ::_exit(1);
    (void)Write("/proc/self/setgroups", "deny");
    if (!Write("/proc/self/uid_map", "1000 " + uid + " 1")) ::_exit(1);
    if (!Write("/proc/self/gid_map", "1000 " + gid + " 1")) ::_exit(1);
    const pid_t init = ::fork();
    if (init == 0) RunInit(bodies);
    (void)::waitpid(init, nullptr, 0);
    ::_exit(0);
  }

  void RunInit(const std::vector<Body>& bodies) const {
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)::setsid();
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0 ||
        ::mount("proc", "/proc", "proc", 0, nullptr) < 0 ||
        ::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=512m") < 0) {
      ::_exit(1);
    }
    // A change of capabilities has taken it away; init of a sandbox has been executed since.
    (void)::prctl(PR_SET_DUMPABLE, 1);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      if (::fork() != 0) continue;
      if (!go_[i].Await()) ::_exit(1);
      (void)::setsid();
      ::_exit(bodies[i]());
    }
    ready_.Done();
    while (true) {
      if (::wait(nullptr) > 0) {
        ended_.Done();
      } else {
        ::pause();
      }
    }
  }

  std::vector<Steps> go_;
  Steps ready_;
  Steps ended_;
  Process outer_;
  Process init_;
  std::vector<Process> children_;
};

/// Keeps a processor busy for `seconds` of CPU time of the calling thread.
inline void Burn(double seconds) {
  timespec now{};
  const auto used = [&now] {
    (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  };
  const double end = used() + seconds;
  while (used() < end) {
  }
}

}  // namespace palmshed::kernel
