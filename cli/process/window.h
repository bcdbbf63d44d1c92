// The size of our own terminal, and its changes.
#pragma once

#include <optional>
#include <utility>

#include "cli/process/wakeup.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {

/// Of the first of our standard descriptors that is a terminal. One that does not know its size
/// (0 rows or columns, as a serial line) counts as one of 24 rows and 80 columns. nullopt: none is.
std::optional<TerminalSize> OwnTerminalSize();

/// Changes of it while the program runs.
class WindowChanges {
 public:
  /// Catches SIGWINCH from now on. Preconditions: called once, on the thread that takes signals.
  static Result<WindowChanges> Watch();

  /// Readable when the size may have changed.
  int fd() const { return wakeup_.fd(); }
  /// The size at this moment; fd() is no longer readable then.
  std::optional<TerminalSize> Take() const;

 private:
  explicit WindowChanges(Wakeup wakeup) : wakeup_(std::move(wakeup)) {}

  Wakeup wakeup_;
};

}  // namespace palmshed::cli
