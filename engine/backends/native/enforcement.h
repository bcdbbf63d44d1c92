// The limits of a sandbox's executions: which enforcers each needs, and the child that they hold.
// Executions without limits have a child too where one waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/native/armed_children.h"
#include "backends/native/enforcer.h"
#include "backends/native/plain_bearer.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// The enforcers of one execution. Begun by Enforcement::Begin, then the loop's thread only.
class EnforcedExecution {
 public:
  bool limited() const { return limited_; }
  /// The child that is to become the program, or to bear it; 0: a new one.
  std::uint32_t child() const { return child_; }
  /// The child's own; null: it is reached by way of init.
  const SharedSocket& socket() const { return socket_; }
  /// It was given up, and has come back.
  void SetSocket(SharedSocket socket) { socket_ = std::move(socket); }
  const CarriedLimits& carried() const { return carried_; }

  /// `exceeded` runs at most once per enforcer.
  void Watch(Loop& loop, const std::function<void()>& exceeded);
  void Kill();
  bool killed() const { return killed_; }
  /// Adds what is known by now to how its main process ended.
  void AddSoFar(ExecEnd& end) const;
  /// Before Finish; `concluded` as of Enforcer::Conclude.
  void Conclude(int wait_status, Loop& loop, std::function<void()> concluded);
  /// Adds what was found out to how it ended.
  void Finish(ExecEnd& end);

 private:
  friend class Enforcement;

  void BoundPeak(ExecEnd& end) const;

  plan::Limits limits_{};
  std::uint32_t child_ = 0;
  SharedSocket socket_{};
  CarriedLimits carried_{};
  bool limited_ = false;     ///< Else its child, if it has one, is the plain bearer.
  bool counts_all_ = false;  ///< ArmedChildren::KeepAlone was called for it.
  bool killed_ = false;      ///< Perhaps with the child that bore it.
  Enforcers of_child_{};     ///< They came with the child, and go back.
  Enforcers of_this_{};
};

/// Of one sandbox. Any thread, unless said otherwise.
class Enforcement {
 public:
  struct Context {
    Worker* worker;  ///< Outlives this.
    bool bears;      ///< Init's children can bear more than one program.
    /// The sources of enforcers, the best first: what one covers is not asked of the next. Called
    /// when a limit is first asked for.
    std::function<std::vector<std::shared_ptr<EnforcerSource>>()> sources;
    std::function<Result<std::uint32_t>(ChildRole)> ask;  ///< As of ArmedChildren.
    std::function<void(std::uint32_t)> dismiss;           ///< As of ArmedChildren.
  };

  explicit Enforcement(Context context);

  /// Whether any limit was asked for.
  bool used() const { return used_; }
  /// So that the first execution need not wait.
  void Prepare(const plan::Limits& ceilings);
  /// The limits hold for whatever the child becomes. Waits for one where none is ready; without
  /// limits there need be none.
  Result<EnforcedExecution> Begin(const plan::Limits& limits);
  /// Nothing was started.
  void Abandon(EnforcedExecution execution);
  /// It has ended, and Finish was called: takes back what the next one can use. The rest goes with
  /// `execution`, which takes longer. `child_waits`: init says that what bore it waits again. True:
  /// there is something to prepare for the next one.
  bool Return(EnforcedExecution& execution, bool child_waits);
  /// As of ArmedChildren.
  bool busy();
  /// Makes ready what the next one needs, if it is not.
  void PrepareNext();

  void Rest();  ///< As of ArmedChildren, and the next three.
  void OnArmed(std::uint32_t sequence, Result<ArmedChildren::Armed> child);
  void OnGone(std::uint32_t child);
  void OnDead(const Error& why);
  void AwaitIdle();  ///< As of ArmedChildren.

 private:
  /// What a source has to do for an execution.
  struct Share {
    EnforcerSource* source;
    plan::Limits limits;
  };

  EnforcedExecution BeginPlain();
  bool ReturnPlain(EnforcedExecution& execution, bool child_waits);
  /// Null when nothing needs a child.
  std::shared_ptr<ArmedChildren> Children();
  void FindSources();
  /// Takes out of `limits` what is enforced.
  std::vector<Share> Divide(plan::Limits& limits) const;
  Result<void> Start(const plan::Limits& limits, EnforcedExecution& execution);

  const Context context_;
  std::once_flag found_;
  std::atomic<bool> used_ = false;
  std::vector<std::shared_ptr<EnforcerSource>> sources_{};  ///< Constant once found.
  std::mutex mu_;
  std::shared_ptr<ArmedChildren> children_;
  std::optional<PlainBearer> plain_;  ///< As it was made; empty where nothing can bear.
  std::optional<Error> dead_;
};

}  // namespace palmshed::backends::native
