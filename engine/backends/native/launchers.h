// The launchers that run: one for each kind of sandbox asked for, ended when nobody needs it.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backends/native/host.h"
#include "backends/native/launcher.h"
#include "backends/native/rungs.h"
#include "base/loop.h"
#include "base/worker.h"

namespace palmshed::backends::native {

/// Any thread. A launcher without sandboxes that has not been asked for during a whole period is
/// retired; while there is no launcher, nothing wakes up.
class Launchers {
 public:
  static constexpr std::chrono::seconds kIdlePeriod{60};

  /// Both outlive the object.
  Launchers(Loop* loop, Worker* worker, std::chrono::nanoseconds idle_period = kIdlePeriod);
  ~Launchers();
  Launchers(const Launchers&) = delete;
  Launchers& operator=(const Launchers&) = delete;

  /// A copy: it stays usable when another thread replaces a launcher that has died.
  Rung For(const Host& host, Kind kind);
  std::size_t running() const;
  /// True once for each kind, and only as long as it has had no launcher: a sandbox of it may be
  /// made without one.
  bool TakeFirst(Kind kind);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Rung rung;
    Clock::time_point used;
  };
  // On the loop's thread.
  void Arm();
  void RetireIdle();

  std::vector<std::shared_ptr<Launcher>> TakeIdle();

  Loop* const loop_;
  Worker* const worker_;
  const std::chrono::nanoseconds idle_period_;
  std::unique_ptr<Loop::Timer> timer_;  ///< The loop's thread only.

  mutable std::mutex mu_;
  bool armed_ = false;
  std::map<Kind, Entry> entries_;
  std::set<Kind> begun_;  ///< Kinds of which a sandbox has been asked for.
};

}  // namespace palmshed::backends::native
