// Holding one execution to its limits.
//
// Theory of operation. An execution with limits begins with a child that waits in init to be told
// what to run (child/pool.h). Each enforcer takes that child in (moves it into its group, opens a
// counter on it): that may take milliseconds, so it happens before the program is there. When it
// is, every enforcer gets its limits, then the child is told. So they hold from the first
// instruction on, and nothing slow stands on the way of an execution. A child that bears programs
// (child/bearer.h) is adopted once, and renewed for each program after its first.
//
//   Adopt(child)  Begin(limits)  Watch(...)  [exceeded -> Kill]  Conclude(...)  Finish()  Renew()
//   ...
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/loop.h"
#include "child/wire.h"
#include "palmshed/error.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// Limits that the workload carries itself; zero: none (child/wire.h, ExecRequest).
struct CarriedLimits {
  std::uint64_t file_bytes = 0;   ///< RLIMIT_FSIZE
  std::uint64_t cpu_seconds = 0;  ///< RLIMIT_CPU, a backstop
  std::uint64_t processes = 0;    ///< RLIMIT_NPROC, without init's own
};

/// What enforcement found out about an execution that has ended.
struct Enforced {
  std::optional<LimitHit> hit{};
  std::vector<std::pair<std::string, std::int64_t>> evidence{};
  std::optional<std::chrono::nanoseconds> cpu_time{};  ///< Of all processes of the execution.
  std::optional<Bytes> peak_memory{};                  ///< A lower bound.
  bool killed = false;  ///< Somebody may have killed the child that bore it.
};

using child::ChildRole;

/// One mechanism, for one execution at a time. One thread at a time.
class Enforcer {
 public:
  virtual ~Enforcer() = default;
  /// Whether it has to have a child before the program is there.
  virtual bool NeedsChild() const = 0;
  /// Takes the waiting child in; its number on the host. Not on the loop's thread.
  virtual Result<void> Adopt(pid_t child, ChildRole role) = 0;
  /// After Finish: the adopted child waits for another program. Whether it may have it; if so, as
  /// after Adopt. Not on the loop's thread.
  virtual bool Renew() { return false; }
  /// Nothing will run for a while: gives up what is only held to be quick. Between Adopt and Begin,
  /// or after Finish.
  virtual void Rest() {}
  /// The limits that hold from now on: those that this mechanism does not cover are zero. What the
  /// workload has to carry is added to `carried`, each the lower of both. Not on the loop's thread.
  virtual Result<void> Begin(const plan::Limits& limits, CarriedLimits& carried) = 0;
  /// On the loop's thread, once the child was told: `exceeded` runs there at most once, as soon as
  /// a limit has been met that ends the execution. The caller then kills everything.
  virtual void Watch(Loop& loop, std::function<void()> exceeded) = 0;
  /// Kills what it holds, where it can do so at once.
  virtual void Kill() = 0;
  /// On the loop's thread, once every process is dead and before Finish: what it takes longer to
  /// find out, or to undo. `wait_status` is the main process's, as of wait(2). `concluded` runs on
  /// the loop's thread, perhaps within the call, and never after Finish, which need not wait for
  /// it.
  virtual void Conclude(int /*wait_status*/, Loop& /*loop*/,
                        std::function<void()> concluded) {  // NOLINT(*-value-param): others keep it
    concluded();
  }
  /// On the loop's thread, after Begin: what is known by now.
  virtual Enforced SoFar() { return {}; }
  /// On the loop's thread, once every process is dead: stops watching.
  virtual Enforced Finish() = 0;
  /// Whether it may adopt another child.
  virtual bool Reusable() const = 0;
};

/// Makes the enforcers of one sandbox. Any thread. Outlives them.
class EnforcerSource {
 public:
  virtual ~EnforcerSource() = default;
  /// As of its enforcers.
  virtual bool NeedsChild() const = 0;
  /// Whether a child that only bears programs will do.
  virtual bool TakesBearer() const { return false; }
  /// `limits` without what this mechanism does not cover; none left: it is not needed.
  virtual plan::Limits Covered(const plan::Limits& limits) const = 0;
  virtual Result<std::unique_ptr<Enforcer>> Make() = 0;
  /// The sandbox is gone: from here on nothing of it, nor of the backend, is used. Waits for what
  /// is under way. Idempotent.
  virtual void Close() {}
};

}  // namespace palmshed::backends::native
