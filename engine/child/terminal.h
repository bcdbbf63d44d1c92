// The terminal of an execution.
//
// Theory of operation. The child that becomes the program opens it, so that it is of the sandbox's
// own devpts, its device belongs to the sandbox's user, and what the kernel keeps for it is charged
// to the execution. It sends both ends to the engine before it executes anything: the master, from
// which the engine reads what the program writes, and the slave, which the engine only holds, so
// that a program that closes all of its descriptors and opens /dev/tty later is not hung up. The
// socket is of this execution alone: nobody else can send there, or takes from it.
#pragma once

#include <cstdint>
#include <type_traits>

#include "child/failure.h"

namespace palmshed::child {

struct TerminalPlan {
  bool asked;
  int engine;  ///< Where the ends are sent.
  std::uint16_t rows;
  std::uint16_t columns;
};
static_assert(std::is_trivially_copyable_v<TerminalPlan>);

/// In the child, which leads a session without a terminal: this one becomes its controlling
/// terminal, and descriptors 0 to 2.
Failure TakeTerminal(const TerminalPlan& plan);

}  // namespace palmshed::child
