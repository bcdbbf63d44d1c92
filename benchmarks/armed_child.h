// A child that waits, already made, for the moment at which it is to run a program.
#pragma once

#include <sys/types.h>

#include <array>
#include <thread>

namespace palmshed::benchmarks {

/// A vfork child shares its parent's memory and puts the thread that made it to sleep until it
/// executes a program. So it is made by a thread of its own, and waits in recvmsg(2) for its
/// descriptors: what reaches it needs nobody else to wake up.
class ArmedChild {
 public:
  ArmedChild();  ///< Returns when the child waits.
  ~ArmedChild();
  ArmedChild(const ArmedChild&) = delete;
  ArmedChild& operator=(const ArmedChild&) = delete;

  pid_t pid() const { return pid_; }
  /// Lets it run the program, drains its output and waits for its end.
  void Run();

 private:
  std::array<int, 2> socket_{-1, -1};  ///< Ours, the child's.
  pid_t pid_ = 0;
  std::thread parent_;
};

}  // namespace palmshed::benchmarks
