// A host program whose every system call, and those of all that it starts, is a step at which the
// test can do something.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "faults/roles.h"

namespace palmshed::tests {

/// Where a host program is. Steps are counted in the four in the middle.
enum class Phase : std::uint8_t {
  kBefore,   ///< Makes ready; nothing is done to it.
  kCreate,   ///< Makes an engine and a sandbox.
  kExec,     ///< Runs programs.
  kDestroy,  ///< Destroys the sandbox.
  kAfter,    ///< Shows that the engine still works; nothing is done to it.
  kClose,    ///< Ends the engine.
};

std::string_view ToString(Phase phase);
inline void PrintTo(Phase phase, std::ostream* out) { *out << ToString(phase); }

/// A system call that is about to be made.
struct Call {
  Role role{};
  Phase phase{};
  long number = 0;  ///< As in <sys/syscall.h>.
  std::array<std::uint64_t, 6> arguments{};
};

/// In the host program: says where it is, and that it gets on, each time before it calls the
/// engine.
class Progress {
 public:
  void Enter(Phase phase) const;
  /// A line for the test, at most some thousands of characters in all.
  void Report(const std::string& line) const;
};

/// What became of a host program.
struct Course {
  std::vector<Call> calls;          ///< Of the phases that count, in order.
  std::vector<std::string> report;  ///< What it has reported.
  std::string hung;                 ///< Where it did not get on for too long, or empty.
  std::string ended;                ///< How it ended, when not by itself.
  std::vector<std::string> stays;   ///< What still ran two seconds after its end, as "pid comm".
};

/// Asked at each call of the phases that count: the errno to answer instead of doing it, or 0.
using AtCall = std::function<int(const Call&, Roles&)>;

struct HostKind {
  bool forks = false;  ///< It leaves one process that stays, which is ended when nothing else is.
  std::chrono::seconds patience{10};  ///< From one thing that it does to the next.
};

/// Runs `host` in a process of its own to its end, and waits for the end of all that it has
/// started. Without a value where system calls cannot be watched.
std::optional<Course> RunHost(const std::function<void(const Progress&)>& host,
                              const AtCall& at_call, const HostKind& kind = {});

}  // namespace palmshed::tests
