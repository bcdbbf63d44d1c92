// SIGINT, SIGTERM and SIGHUP: the first asks for a graceful end, the second ends us at once.
#pragma once

#include "palmshed/error.h"

namespace palmshed::cli {

/// The process's handlers for the signals that ask it to stop. A signal that was ignored at our
/// start (nohup, `trap '' INT`) stays ignored. SIGPIPE becomes an error of write(2).
class StopSignals {
 public:
  /// Installs the handlers. Preconditions: called once, before the engine starts its threads.
  static Result<StopSignals> Install();

  /// Readable once a signal has come.
  int fd() const { return fd_; }
  /// The first signal that has come, else 0.
  int received() const;

 private:
  explicit StopSignals(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace palmshed::cli
