#include "backends/native/armed_children.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backends/native/enforcer.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {
namespace {

/// More than can have been made before a sandbox died.
constexpr int kMoreAttempts = 2 * static_cast<int>(ArmedChildren::kMost) + 8;

template <class T>
T TakeLast(std::vector<T>& from) {
  T last = std::move(from.back());
  from.pop_back();
  return last;
}

void LetRest(const Enforcers& enforcers) {
  for (const auto& enforcer : enforcers) enforcer->Rest();
}

void LetChildRest(ArmedChildren::Child& child) {
  child.socket.reset();
  LetRest(child.enforcers);
}

}  // namespace

ArmedChildren::ArmedChildren(Context context)
    : context_(std::move(context)),
      role_(std::ranges::all_of(context_.sources,
                                [](const auto& source) { return source->TakesBearer(); })
                ? ChildRole::kBearsProgram
                : ChildRole::kBecomesProgram) {}

void ArmedChildren::Prepare() {
  const std::lock_guard lock(mu_);
  for (std::size_t i = 0; i < used_.size(); ++i) {
    context_.worker->Post([self = shared_from_this()] { self->RenewOne(); });
  }
  FillLocked();
}

bool ArmedChildren::busy() {
  const std::lock_guard lock(mu_);
  return busy_;
}

void ArmedChildren::Rest() {
  const std::lock_guard lock(mu_);
  resting_ = true;
  for (auto* waiting : {&ready_, &used_}) std::ranges::for_each(*waiting, LetChildRest);
  for (const Enforcers& spare : spare_) LetRest(spare);
}

Result<ArmedChildren::Child> ArmedChildren::Take() {
  std::unique_lock lock(mu_);
  resting_ = false;
  auto child = TakeLocked(lock);
  // The child has died before it was taken in. If the sandbox has, the next one will not come.
  for (int again = 0; !child && child.error().sys_errno == ESRCH && again < kMoreAttempts;
       ++again) {
    child = TakeLocked(lock);
  }
  if (!child) return child;
  ++running_;
  lately_ = std::max(lately_, running_);
  busy_ = lately_ > 1 || (returned_ && Clock::now() - *returned_ < context_.in_a_row);
  return child;
}

Result<ArmedChildren::Child> ArmedChildren::TakeLocked(std::unique_lock<std::mutex>& lock) {
  std::optional<Child> renewed;
  ++waiting_;
  failed_.reset();
  while (!renewed && ready_.empty() && !dead_) {
    if (!used_.empty()) {
      renewed = RenewHere(lock);
      continue;
    }
    if (!born_.empty() || failed_) break;
    if (asked_.size() + adopting_ < waiting_) AskLocked();
    if (!failed_ && !dead_) changed_.wait(lock);
  }
  --waiting_;
  changed_.notify_all();
  if (dead_) return std::unexpected(*dead_);
  if (renewed) return *std::move(renewed);
  if (ready_.empty() && born_.empty()) return std::unexpected(*failed_);
  return ready_.empty() ? AdoptHere(lock) : Result<Child>(TakeLast(ready_));
}

std::optional<ArmedChildren::Child> ArmedChildren::RenewHere(std::unique_lock<std::mutex>& lock) {
  Child child = TakeLast(used_);
  ++adopting_;
  lock.unlock();
  const bool renewed =
      std::ranges::all_of(child.enforcers, [](const auto& enforcer) { return enforcer->Renew(); });
  if (!renewed) context_.dismiss(child.sequence);
  lock.lock();
  --adopting_;
  changed_.notify_all();
  if (renewed) return child;
  DropLater(std::move(child.enforcers));
  return std::nullopt;
}

Result<ArmedChildren::Child> ArmedChildren::AdoptHere(std::unique_lock<std::mutex>& lock) {
  Born born = TakeLast(born_);
  ++adopting_;
  lock.unlock();
  auto child = Adopt(std::move(born));
  lock.lock();
  --adopting_;
  changed_.notify_all();
  return child;
}

void ArmedChildren::KeepAlone() {
  const std::lock_guard lock(mu_);
  ++counting_all_;
}

bool ArmedChildren::alone() {
  const std::lock_guard lock(mu_);
  return AloneLocked();
}

void ArmedChildren::ComeBackLocked(const Child& child) {
  --running_;
  if (child.counts_all) --counting_all_;
}

void ArmedChildren::Discard(Child child) {
  context_.dismiss(child.sequence);
  const std::lock_guard lock(mu_);
  ComeBackLocked(child);
  if (!dead_) FillLocked();
  DropLater(std::move(child.enforcers));
}

void ArmedChildren::Return(Child child, bool waits) {
  const std::lock_guard lock(mu_);
  ComeBackLocked(child);
  child.counts_all = false;
  returned_ = Clock::now();
  if (running_ == 0 && lately_ > 1) --lately_;
  if (waits) {
    if (!dead_ && ready_.size() + used_.size() < AtOnceLocked()) {
      used_.push_back(std::move(child));
      changed_.notify_all();
      return;
    }
    context_.dismiss(child.sequence);
  } else if (!dead_ && spare_.size() < kMost) {
    spare_.push_back(std::move(child.enforcers));
    return;
  }
  DropLater(std::move(child.enforcers));
}

/// That takes its time. Their sources must outlive them.
void ArmedChildren::DropLater(Enforcers enforcers) {
  context_.worker->Post(
      [self = shared_from_this(), dropped = std::move(enforcers)]() mutable { dropped.clear(); });
}

std::size_t ArmedChildren::AtOnceLocked() const {
  return std::min(kMost, std::max<std::size_t>(lately_, 1));
}

std::size_t ArmedChildren::WantedLocked() const {
  if (AloneLocked()) return 0;
  const std::size_t wanted = AtOnceLocked();
  if (wanted > running_) return wanted - running_;
  // A bearer comes back.
  return role_ == ChildRole::kBearsProgram ? 0 : 1;
}

void ArmedChildren::FillLocked() {
  const std::size_t coming =
      ready_.size() + used_.size() + born_.size() + adopting_ + asked_.size();
  const std::size_t wanted = WantedLocked() + waiting_;
  for (std::size_t i = coming; i < wanted && !dead_; ++i) AskLocked();
}

void ArmedChildren::AskLocked() {
  auto asked = context_.ask(role_);
  if (asked) {
    asked_.insert(*asked);
  } else {
    failed_ = std::move(asked.error());
  }
}

void ArmedChildren::OnArmed(std::uint32_t sequence, Result<Armed> child) {
  const std::lock_guard lock(mu_);
  if (asked_.erase(sequence) == 0) return;
  if (dead_) return;
  if (!child) {
    failed_ = std::move(child.error());
    changed_.notify_all();
    return;
  }
  born_.push_back({.sequence = sequence, .child = *std::move(child)});
  if (waiting_ > 0) {
    changed_.notify_one();
  } else {
    context_.worker->Post([self = shared_from_this()] { self->AdoptOne(); });
  }
}

void ArmedChildren::OnGone(std::uint32_t sequence) {
  const std::lock_guard lock(mu_);
  if (asked_.erase(sequence) != 0) {
    failed_ = SysError("arm", ESRCH);
    changed_.notify_all();
  }
  for (auto* waiting : {&ready_, &used_}) {
    const auto gone = std::ranges::find(*waiting, sequence, &Child::sequence);
    if (gone == waiting->end()) continue;
    DropLater(std::move(gone->enforcers));
    waiting->erase(gone);
  }
}

void ArmedChildren::OnDead(const Error& why) {
  std::vector<Child> ready;
  std::vector<Child> used;
  std::vector<Enforcers> spare;
  const std::lock_guard lock(mu_);
  dead_ = why;
  ready.swap(ready_);
  used.swap(used_);
  spare.swap(spare_);
  born_.clear();
  changed_.notify_all();
}

void ArmedChildren::AwaitIdle() {
  std::unique_lock lock(mu_);
  changed_.wait(lock, [this] { return adopting_ == 0 && waiting_ == 0; });
}

/// On the worker's thread; somebody who waited may have taken it already.
void ArmedChildren::AdoptOne() {
  std::unique_lock lock(mu_);
  if (born_.empty()) return;
  // Whoever wants one next tries again, and is told why there is none.
  auto child = AdoptHere(lock);
  if (!child || dead_) return;
  if (resting_) LetChildRest(*child);
  ready_.push_back(*std::move(child));
}

/// On the worker's thread; somebody may have taken it already.
void ArmedChildren::RenewOne() {
  std::unique_lock lock(mu_);
  if (used_.empty()) return;
  auto child = RenewHere(lock);
  if (!child) return FillLocked();
  if (dead_) return;
  if (resting_) LetChildRest(*child);
  ready_.push_back(*std::move(child));
  changed_.notify_all();
}

/// Whether they may be used again is asked here and not when they come back: that takes a while,
/// and the loop's thread has better things to do.
std::optional<Enforcers> ArmedChildren::TakeSpare() {
  std::unique_lock lock(mu_);
  while (!spare_.empty()) {
    Enforcers spare = TakeLast(spare_);
    lock.unlock();
    const auto reusable = [](const auto& enforcer) { return enforcer->Reusable(); };
    if (std::ranges::all_of(spare, reusable)) return spare;
    DropLater(std::move(spare));
    lock.lock();
  }
  return std::nullopt;
}

Result<Enforcers> ArmedChildren::TakeEnforcers() {
  if (auto spare = TakeSpare()) return *std::move(spare);
  Enforcers enforcers;
  for (const auto& source : context_.sources) {
    PALMSHED_TRY(auto enforcer, source->Make());
    enforcers.push_back(std::move(enforcer));
  }
  return enforcers;
}

Result<ArmedChildren::Child> ArmedChildren::Adopt(Born born) {
  const auto adopted = [&]() -> Result<Child> {
    PALMSHED_TRY(const pid_t pid, sys::PidOf(born.child.pidfd.get()));
    PALMSHED_TRY(auto enforcers, TakeEnforcers());
    for (const auto& enforcer : enforcers) PALMSHED_TRY_VOID(enforcer->Adopt(pid, role_));
    return Child{.sequence = born.sequence,
                 .socket = std::move(born.child.socket),
                 .enforcers = std::move(enforcers)};
  };
  auto child = adopted();
  if (!child) context_.dismiss(born.sequence);
  return child;
}

}  // namespace palmshed::backends::native
