// The children of one sandbox that wait in its init for their program, each with the enforcers that
// have taken it in.
//
// Theory of operation. A child goes through three hands: init is asked for one (asked), it is there
// (born), its enforcers have it (ready). The last step may take milliseconds; it happens on a
// thread for that, or on that of a caller who is waiting for the child anyway. Another is asked for
// after the execution has ended (Prepare), so as not to be in its way; whoever runs one program
// right after another, or several at once (busy), has it got ready meanwhile. As many stay ready as
// lately ran at once, within kMost.
//
// Where every enforcer takes it, a child bears its programs (child/bearer.h) and waits again after
// each (used), until its enforcers say that it may have another.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "backends/native/enforcer.h"
#include "base/unique_fd.h"
#include "base/worker.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

using Enforcers = std::vector<std::unique_ptr<Enforcer>>;
/// A socket that a thread may be sending to when it is given up.
using SharedSocket = std::shared_ptr<const UniqueFd>;

/// Any thread, unless said otherwise.
class ArmedChildren : public std::enable_shared_from_this<ArmedChildren> {
 public:
  static constexpr std::size_t kMost = 4;

  struct Child {
    std::uint32_t sequence = 0;
    SharedSocket socket{};  ///< A bearer's own, until Rest; null: it is reached by way of init.
    Enforcers enforcers{};
    bool counts_all = false;  ///< KeepAlone was called for it.
  };

  struct Context {
    Worker* worker;  ///< Outlives everything that is posted to it.
    std::vector<std::shared_ptr<EnforcerSource>> sources{};  ///< Those that need a child.
    /// Asks init for a child; the number by which the answer will name it.
    std::function<Result<std::uint32_t>(ChildRole)> ask;
    std::function<void(std::uint32_t)> dismiss;  ///< Tells init that a child is not needed.
    /// Whoever comes so soon after the last execution runs one right after another.
    std::chrono::steady_clock::duration in_a_row = std::chrono::milliseconds(2);
  };

  explicit ArmedChildren(Context context);

  /// Has one made for the next execution, in the background, unless there is one.
  void Prepare();
  /// Whether the one that was taken last was so right after another, or beside others: then the
  /// next will soon be wanted.
  bool busy();
  /// One that is ready. Waits for it where there is none; not on the loop's thread.
  Result<Child> Take();
  /// One that was taken has a limit that counts whatever the sandbox has (RLIMIT_NPROC): until it
  /// comes back none is made beside it that nobody waits for, unless several run at once anyway.
  void KeepAlone();
  /// Whether there is such a one.
  bool alone();
  /// Nothing has run for a while: those that are ready, those that will be before one is taken, and
  /// what is left of earlier ones, hold nothing only to be quick.
  void Rest();
  /// What was taken and is not used: its enforcers may have begun.
  void Discard(Child child);
  /// The execution is over, and its enforcers have finished. `waits`: the child bore it and waits
  /// for another. Quick: whoever waits for its end may be told afterwards, and Prepare called later
  /// still.
  void Return(Child child, bool waits);

  /// Init's answer.
  struct Armed {
    UniqueFd pidfd;
    SharedSocket socket{};  ///< As of Child.
  };
  /// Init's answer: a child, or why there is none.
  void OnArmed(std::uint32_t sequence, Result<Armed> child);
  /// One has died that waits, or was to.
  void OnGone(std::uint32_t sequence);
  /// Init is dead: nobody waits any longer, and what enforcers held is given up.
  void OnDead(const Error& why);
  /// After OnDead: when it returns, nobody makes or attaches anything any more.
  void AwaitIdle();

 private:
  using Clock = std::chrono::steady_clock;
  struct Born {
    std::uint32_t sequence = 0;
    Armed child;
  };

  bool AloneLocked() const { return counting_all_ > 0 && lately_ <= 1; }
  void ComeBackLocked(const Child& child);
  std::size_t AtOnceLocked() const;
  std::size_t WantedLocked() const;
  void FillLocked();
  void AskLocked();
  Result<Child> TakeLocked(std::unique_lock<std::mutex>& lock);
  std::optional<Child> RenewHere(std::unique_lock<std::mutex>& lock);
  Result<Child> AdoptHere(std::unique_lock<std::mutex>& lock);
  Result<Child> Adopt(Born born);
  std::optional<Enforcers> TakeSpare();
  Result<Enforcers> TakeEnforcers();
  void AdoptOne();
  void RenewOne();
  void DropLater(Enforcers enforcers);

  const Context context_;
  const ChildRole role_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::set<std::uint32_t> asked_;
  std::vector<Born> born_;
  std::vector<Child> ready_;
  std::vector<Child> used_;       ///< Bearers that wait again.
  std::vector<Enforcers> spare_;  ///< Of earlier executions.
  std::size_t adopting_ = 0;      ///< Or renewing; on whatever thread.
  std::size_t waiting_ = 0;       ///< Callers in Take.
  std::size_t running_ = 0;       ///< Taken and not returned.
  std::size_t counting_all_ = 0;  ///< Of those.
  bool resting_ = false;          ///< Since Rest, until one is taken.
  bool busy_ = false;
  std::size_t lately_ = 0;                       ///< How many ran at once.
  std::optional<Clock::time_point> returned_{};  ///< When an execution last ended.
  std::optional<Error> failed_;  ///< Why the last one that was asked for did not come.
  std::optional<Error> dead_;
};

}  // namespace palmshed::backends::native
