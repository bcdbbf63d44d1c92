// From our own standard input to the sandboxed program's.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "palmshed/execution.h"

namespace palmshed::cli {

/// Reads only when poll(2) said that there is something, so that an input that stays open and
/// silent holds nobody up.
class InputFeed {
 public:
  /// Feeds `execution`, which must have been started with a pipe and must outlive this.
  explicit InputFeed(Execution& execution);

  /// The descriptor to wait for, or -1 while there is nothing to wait for.
  int fd() const;
  /// True while the engine's queue is full: to be tried again after a short while, since nothing
  /// tells when there is room.
  bool congested() const { return !pending_.empty(); }
  /// Moves one piece on.
  void Pump();

 private:
  void Read();
  void Offer();
  void Finish();

  Execution& execution_;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> pending_{};  ///< Read and not taken by the engine yet.
  bool regular_;
  bool open_ = true;
};

}  // namespace palmshed::cli
