// The engine's event loop: one thread, Boost.Asio underneath (kept out of headers).
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed {

/// Owns one thread that blocks every signal and runs callbacks one after another. Callbacks must
/// not block. Watches and timers are made and destroyed on the loop's thread, or before it can run
/// them.
class Loop {
 public:
  /// Calls back while a descriptor is readable (or, once armed, writable). Destroying it stops the
  /// callbacks at once; the descriptor stays open, its owner closes it after.
  class Watch {
   public:
    virtual ~Watch() = default;
  };
  /// Calls back once. Destroying it cancels.
  class Timer {
   public:
    virtual ~Timer() = default;
  };

  static Result<std::unique_ptr<Loop>> Create();
  virtual ~Loop() = default;  ///< Finishes; not from the loop's own thread.

  /// Runs what has been posted, then ends the thread. From then on every task runs where it is
  /// handed over, and watches and timers never call back. Idempotent; not from the loop's own
  /// thread.
  virtual void Finish() = 0;
  /// Runs `task` on the loop's thread, after everything posted earlier. Any thread.
  virtual void Post(std::move_only_function<void()> task) = 0;
  /// As Post, but waits until it has run; runs it directly when called on the loop's thread.
  virtual void Run(const std::function<void()>& task) = 0;
  virtual bool InLoop() const = 0;

  /// `ready` runs whenever `fd` is readable or has reached its end. Errors: OVERLOADED.
  virtual Result<std::unique_ptr<Watch>> WatchReadable(BorrowedFd fd,
                                                       std::function<void()> ready) = 0;
  /// `ready` runs whenever `fd` is writable. Errors: OVERLOADED.
  virtual Result<std::unique_ptr<Watch>> WatchWritable(BorrowedFd fd,
                                                       std::function<void()> ready) = 0;
  /// `expired` runs after `delay` on CLOCK_MONOTONIC.
  virtual std::unique_ptr<Timer> After(std::chrono::nanoseconds delay,
                                       std::function<void()> expired) = 0;
};

}  // namespace palmshed
