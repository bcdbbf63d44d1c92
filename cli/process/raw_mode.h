// Our own terminal in raw mode while a program has its input, as ssh(1) does it: every key goes to
// the program, which has a terminal of its own to interpret it.
#pragma once

#include "palmshed/error.h"

namespace palmshed::cli {

/// Raw from its making to its end. Between the two the terminal also gets its modes back when a
/// signal ends or stops us, and turns raw again when we are continued in the foreground. One at a
/// time. A terminal that another process group has in the foreground is left alone.
class RawMode {
 public:
  /// Standard input must be a terminal. The thread that calls it is the only one that takes
  /// signals.
  RawMode();
  ~RawMode();
  RawMode(const RawMode&) = delete;
  RawMode& operator=(const RawMode&) = delete;
};

/// For whoever ends the process without unwinding: gives the terminal its modes back, if a RawMode
/// has them. Async-signal-safe.
void RestoreTerminal();

}  // namespace palmshed::cli
