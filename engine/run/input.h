// What is on its way to a program's standard input.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "base/loop.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::run {

/// A bounded queue in front of a pipe or a terminal, which has no end: there the end-of-file
/// character is typed at the end of the input. Queue and Close come from any thread, the rest
/// happens on the loop's. A program that does not read, or has closed its end, holds up nobody.
class Input {
 public:
  static constexpr std::size_t kMaxQueued = 16U << 20;

  /// Before the loop sees it: the pipe's write end, non-blocking.
  void Open(UniqueFd pipe, std::string first, bool close_after);
  /// The same with a terminal that is not there yet.
  void OpenTerminal(std::string first, bool close_after);
  /// On the loop's thread: there it is.
  void Connect(UniqueFd terminal);
  bool open() const;
  /// OVERLOADED beyond kMaxQueued, CONFLICT without an open pipe.
  Result<void> Queue(std::span<const std::byte> bytes);
  Result<void> Close();
  /// On the loop's thread: writes what it can; when there is more, `again`, which has to call this
  /// again, runs once there is room. After an error nothing more is written, and the pipe stays
  /// open until Shut: the program must not take what it got for all of it.
  Result<void> Flush(Loop& loop, std::function<void()> again);
  /// On the loop's thread: drops everything.
  void Shut();

 private:
  Result<bool> WriteSome();  ///< False when the pipe is full.
  Result<bool> WriteAll();   ///< The same, with what ends it.
  Result<void> WriteOrWait(Loop& loop, std::function<void()> again);

  mutable std::mutex mu_;
  UniqueFd pipe_;                       ///< Changed on the loop's thread only.
  std::unique_ptr<Loop::Watch> watch_;  ///< The loop's thread only.
  std::deque<std::string> queue_;
  std::size_t offset_ = 0;  ///< Into the first of `queue_`.
  std::size_t queued_ = 0;
  bool accepting_ = false;
  bool failed_ = false;
  bool typed_end_ = false;  ///< The end-of-file character is to be typed.
  char last_ = '\n';        ///< Written last.
};

}  // namespace palmshed::run
