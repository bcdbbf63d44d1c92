// What reads one stream of a program's output.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/loop.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "run/output.h"

namespace palmshed::run {

/// From a pipe, or a terminal, into an Output. The loop's thread only, once the loop sees it. After
/// an error some of the output is missing.
class Pump {
 public:
  /// What is non-blocking and to be read.
  void Open(UniqueFd fd) { fd_ = std::move(fd); }
  bool open() const { return fd_.valid(); }
  /// `ready` runs whenever there is something to be read; until Pause. Nothing where it is not
  /// open.
  Result<void> Watch(Loop& loop, std::function<void()> ready);
  void Pause() { watch_.reset(); }
  /// Reads once. False when there is no more at this moment, or will not be any.
  Result<bool> ReadOnce(Output& output);
  /// Reads what a pipe holds at this moment.
  Result<void> Drain(Output& output);
  /// The same of a terminal.
  Result<void> DrainTerminal(Output& output);
  void Close();

 private:
  UniqueFd fd_{};
  std::unique_ptr<Loop::Watch> watch_{};
};

}  // namespace palmshed::run
