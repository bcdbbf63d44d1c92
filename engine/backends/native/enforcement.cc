#include "backends/native/enforcement.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/native/armed_children.h"
#include "backends/native/enforcer.h"
#include "backends/native/plain_bearer.h"
#include "base/faults.h"
#include "base/loop.h"
#include "base/result.h"
#include "palmshed/error.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

constexpr auto kNeedsChild = [](const auto& share) {
  return share.source->NeedsChild() && share.limits.any();
};

/// It goes over what init saw: the enforcers know of every process.
void Add(const Enforced& found, ExecEnd& end) {
  if (!end.hit) end.hit = found.hit;
  end.evidence.insert(end.evidence.end(), found.evidence.begin(), found.evidence.end());
  if (found.cpu_time) {
    end.cpu_time = std::max(end.cpu_time.value_or(std::chrono::nanoseconds(0)), *found.cpu_time);
  }
  if (found.peak_memory) {
    end.peak_memory = std::max(end.peak_memory.value_or(Bytes{}), *found.peak_memory);
  }
}

plan::Limits Without(plan::Limits limits, const plan::Limits& covered) {
  const auto take = [](auto& limit, const auto& taken) {
    if (taken != std::decay_t<decltype(taken)>{}) limit = {};
  };
  take(limits.cpu_time, covered.cpu_time);
  take(limits.cpu_quota, covered.cpu_quota);
  take(limits.memory, covered.memory);
  take(limits.pids, covered.pids);
  take(limits.disk, covered.disk);
  return limits;
}

/// All of them, but for the deliberate defects of test programs.
plan::Limits Held(plan::Limits limits) {
  if (Faulty("no-cpu-limit")) limits.cpu_time = Millis(0);
  if (Faulty("no-cpu-quota")) limits.cpu_quota = 0;
  if (Faulty("no-memory-limit")) limits.memory = Bytes{};
  if (Faulty("no-pids-limit")) limits.pids = 0;
  return limits;
}

}  // namespace

// ---- one execution

void EnforcedExecution::Watch(Loop& loop, const std::function<void()>& exceeded) {
  for (const Enforcers* enforcers : {&of_child_, &of_this_}) {
    for (const auto& enforcer : *enforcers) enforcer->Watch(loop, exceeded);
  }
}

void EnforcedExecution::Kill() {
  killed_ = true;
  for (const Enforcers* enforcers : {&of_child_, &of_this_}) {
    for (const auto& enforcer : *enforcers) enforcer->Kill();
  }
}

void EnforcedExecution::Conclude(int wait_status, Loop& loop, std::function<void()> concluded) {
  // One more than there are, so that those who answer at once do not come before the last is asked.
  const auto left = std::make_shared<std::size_t>(of_child_.size() + of_this_.size() + 1);
  const auto one = [left, concluded = std::move(concluded)] {
    if (--*left == 0) concluded();
  };
  for (const Enforcers* enforcers : {&of_child_, &of_this_}) {
    for (const auto& enforcer : *enforcers) enforcer->Conclude(wait_status, loop, one);
  }
  one();
}

void EnforcedExecution::AddSoFar(ExecEnd& end) const {
  for (const Enforcers* enforcers : {&of_child_, &of_this_}) {
    for (const auto& enforcer : *enforcers) Add(enforcer->SoFar(), end);
  }
  BoundPeak(end);
}

void EnforcedExecution::Finish(ExecEnd& end) {
  for (const Enforcers* enforcers : {&of_child_, &of_this_}) {
    for (const auto& enforcer : *enforcers) {
      const Enforced found = enforcer->Finish();
      killed_ = killed_ || found.killed;
      Add(found, end);
    }
  }
  BoundPeak(end);
}

/// The largest resident set, as init saw it, holds pages of files too, which no limit counts.
void EnforcedExecution::BoundPeak(ExecEnd& end) const {
  if (limits_.memory == Bytes{} || !end.peak_memory) return;
  end.peak_memory = std::min(*end.peak_memory, limits_.memory);
}

// ---- a sandbox

Enforcement::Enforcement(Context context) : context_(std::move(context)) {
  if (!context_.bears) return;
  plain_.emplace(
      PlainBearer::Context{.ask = [this] { return context_.ask(ChildRole::kBearsAtOnce); },
                           .dismiss = context_.dismiss});
}

void Enforcement::FindSources() {
  used_ = true;
  sources_ = context_.sources();
  std::vector<std::shared_ptr<EnforcerSource>> with_child;
  std::ranges::copy_if(sources_, std::back_inserter(with_child),
                       [](const auto& source) { return source->NeedsChild(); });
  if (with_child.empty()) return;
  const std::lock_guard lock(mu_);
  children_ = std::make_shared<ArmedChildren>(ArmedChildren::Context{.worker = context_.worker,
                                                                     .sources = with_child,
                                                                     .ask = context_.ask,
                                                                     .dismiss = context_.dismiss});
  if (dead_) children_->OnDead(*dead_);
}

std::shared_ptr<ArmedChildren> Enforcement::Children() {
  const std::lock_guard lock(mu_);
  return children_;
}

std::vector<Enforcement::Share> Enforcement::Divide(plan::Limits& limits) const {
  std::vector<Share> shares;
  for (const auto& source : sources_) {
    const plan::Limits covered = source->Covered(limits);
    limits = Without(limits, covered);
    shares.push_back({.source = source.get(), .limits = covered});
  }
  return shares;
}

void Enforcement::Prepare(const plan::Limits& ceilings) {
  if (!ceilings.any()) return;
  std::call_once(found_, [this] { FindSources(); });
  plan::Limits limits = ceilings;
  const auto shares = Divide(limits);
  if (std::ranges::any_of(shares, kNeedsChild)) Children()->Prepare();
}

EnforcedExecution Enforcement::BeginPlain() {
  EnforcedExecution execution;
  if (!plain_) return execution;
  if (auto bearer = plain_->Take()) {
    execution.child_ = bearer->sequence;
    execution.socket_ = std::move(bearer->socket);
  }
  return execution;
}

Result<EnforcedExecution> Enforcement::Begin(const plan::Limits& limits) {
  if (!limits.any()) return BeginPlain();
  std::call_once(found_, [this] { FindSources(); });
  for (std::size_t attempt = 0;; ++attempt) {
    EnforcedExecution execution;
    auto started = Start(limits, execution);
    if (started) return execution;
    Abandon(std::move(execution));
    // To a group that is used again a little may still be charged: too much for a very low limit.
    // There are only so many of them.
    const bool charged = started.error().sys_errno == EBUSY;
    if (!charged || attempt > ArmedChildren::kMost) {
      return std::unexpected(std::move(started.error()));
    }
  }
}

/// Every source that needs a child has an enforcer on it, if one of them has to do something.
Result<void> Enforcement::Start(const plan::Limits& limits, EnforcedExecution& execution) {
  execution.limits_ = limits;
  execution.limited_ = true;
  plan::Limits left = limits;
  const auto shares = Divide(left);
  if (left.any()) {
    return std::unexpected(Unsupported("limits", "what was on offer cannot be had for this sandbox",
                                       "run `palmshed doctor`"));
  }
  if (std::ranges::any_of(shares, kNeedsChild)) {
    PALMSHED_TRY(auto child, Children()->Take());
    execution.child_ = child.sequence;
    execution.socket_ = std::move(child.socket);
    execution.of_child_ = std::move(child.enforcers);
  }
  std::size_t of_child = 0;
  for (const auto& [source, share] : shares) {
    Enforcer* enforcer = nullptr;
    if (source->NeedsChild()) {
      if (execution.child_ == 0) continue;
      enforcer = execution.of_child_[of_child++].get();
    } else {
      if (!share.any()) continue;
      PALMSHED_TRY(auto made, source->Make());
      enforcer = execution.of_this_.emplace_back(std::move(made)).get();
    }
    PALMSHED_TRY_VOID(enforcer->Begin(Held(share), execution.carried_));
  }
  if (execution.child_ != 0 && execution.carried_.processes != 0) {
    execution.counts_all_ = true;
    Children()->KeepAlone();
  }
  return {};
}

void Enforcement::Abandon(EnforcedExecution execution) {
  if (execution.child_ == 0) return;
  if (!execution.limited_) {
    context_.dismiss(execution.child_);
    return plain_->Return({}, false);
  }
  Children()->Discard({.sequence = execution.child_,
                       .socket = std::move(execution.socket_),
                       .enforcers = std::move(execution.of_child_),
                       .counts_all = execution.counts_all_});
}

bool Enforcement::ReturnPlain(EnforcedExecution& execution, bool child_waits) {
  if (!plain_) return false;
  if (execution.child_ != 0) {
    plain_->Return({.sequence = execution.child_, .socket = std::move(execution.socket_)},
                   child_waits);
  }
  return plain_->wanted();
}

bool Enforcement::Return(EnforcedExecution& execution, bool child_waits) {
  if (!execution.limited_) return ReturnPlain(execution, child_waits);
  if (execution.child_ == 0) return false;
  // It may be dying.
  if (child_waits && execution.killed_) context_.dismiss(execution.child_);
  Children()->Return({.sequence = execution.child_,
                      .socket = std::move(execution.socket_),
                      .enforcers = std::move(execution.of_child_),
                      .counts_all = execution.counts_all_},
                     child_waits && !execution.killed_);
  return true;
}

bool Enforcement::busy() {
  const auto children = Children();
  return children && children->busy();
}

void Enforcement::PrepareNext() {
  const auto children = Children();
  if (plain_ && !(children && children->alone())) plain_->Prepare();
  if (children) children->Prepare();
}

void Enforcement::Rest() {
  if (plain_) plain_->Rest();
  if (const auto children = Children()) children->Rest();
}

void Enforcement::OnArmed(std::uint32_t sequence, Result<ArmedChildren::Armed> child) {
  if (plain_ && plain_->OnArmed(sequence, child)) return;
  if (const auto children = Children()) children->OnArmed(sequence, std::move(child));
}

void Enforcement::OnGone(std::uint32_t child) {
  if (plain_) plain_->OnGone(child);
  if (const auto children = Children()) children->OnGone(child);
}

void Enforcement::AwaitIdle() {
  if (const auto children = Children()) children->AwaitIdle();
}

void Enforcement::OnDead(const Error& why) {
  if (plain_) plain_->OnDead();
  std::shared_ptr<ArmedChildren> children;
  {
    const std::lock_guard lock(mu_);
    dead_ = why;
    children = children_;
  }
  if (children) children->OnDead(why);
}

}  // namespace palmshed::backends::native
