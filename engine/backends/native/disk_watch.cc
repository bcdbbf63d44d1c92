// The other half of disk_meter.h: executions that are running, and what becomes of them.
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/native/disk_gauge.h"
#include "backends/native/disk_meter.h"
#include "base/faults.h"
#include "base/loop.h"
#include "base/schedule.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"

namespace palmshed::backends::native {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using workspace::CountOnce;
using workspace::DiskAmount;

/// What one processor writes into the page cache, and how many files it makes, at best.
constexpr double kBytesPerMs = 4U << 20;
constexpr double kInodesPerMs = 250;

constexpr milliseconds kShortestTick{1};
constexpr milliseconds kLongestTick{250};
/// Looking takes at most such a part of a processor: one in so many.
constexpr int kIdleShare = 20;
constexpr int kBusyShare = 3;
/// Measurements in a row that fail while a program runs that may be over.
constexpr int kMostFailures = 3;
/// No room for another block.
constexpr std::uint64_t kBlock = 4096;

/// Of the shell that ran it, too: 128 and the signal's number.
bool HitFileLimit(int wait_status) {
  if (WIFSIGNALED(wait_status)) return WTERMSIG(wait_status) == SIGXFSZ;
  return WEXITSTATUS(wait_status) == 128 + SIGXFSZ;
}

}  // namespace

void DiskMeter::Watch(const std::shared_ptr<DiskRun>& run, Loop& loop,
                      std::function<void()> exceeded) {
  const std::lock_guard lock(mu_);
  if (stopped_) return;
  watchers_.push_back({.run = run, .loop = &loop, .exceeded = std::move(exceeded)});
  ScheduleTick();
}

DiskAmount DiskMeter::Left() const {
  DiskAmount allowed = allowed_;
  allowed.bytes += in_flight_.less.bytes;
  return allowed - Used() - Unmeasured();
}

/// By all processors at once.
milliseconds DiskMeter::TimeToFill(const DiskAmount& left) const {
  const double each = std::min(static_cast<double>(left.bytes) / kBytesPerMs,
                               static_cast<double>(left.inodes) / kInodesPerMs);
  return milliseconds(static_cast<milliseconds::rep>(each / processors_));
}

DiskAmount DiskMeter::LeftByHint() const { return Left() - spent_; }

/// Unless it is to come sooner anyway.
void DiskMeter::ScheduleTick() {
  const milliseconds pause =
      look_now_ ? milliseconds(0)
                : std::clamp(TimeToFill(LeftByHint()) / 2, kShortestTick, kLongestTick);
  const auto due = Clock::now() + pause;
  if (next_tick_ && *next_tick_ <= due) return;
  next_tick_ = due;
  schedule_.At(due, [weak = weak_from_this(), number = ++tick_] {
    if (const auto meter = weak.lock()) meter->Tick(number);
  });
}

void DiskMeter::Tick(std::uint64_t number) {
  Lock lock(mu_);
  if (number != tick_) return;
  // Until the next is due this one counts as the next, so that Watch leaves it alone.
  const bool watched = !watchers_.empty() && !stopped_ && !Faulty("disk-unmeasured");
  if (watched && IsDue(lock)) Look(lock);
  next_tick_.reset();
  if (!watchers_.empty() && !stopped_) ScheduleTick();
}

/// By what is gone of the free space, or by the clock: what others delete hides what is written.
bool DiskMeter::IsDue(Lock& lock) {
  if (std::exchange(look_now_, false) || !known_ || failures_ > 0) return true;
  const DiskAmount left = Left();
  const auto since = Clock::now() - known_->at;
  const nanoseconds full = std::min(TimeToFill(left), kLongestTick);
  if (since >= std::max<nanoseconds>(full, known_->took * kIdleShare)) return true;
  if (since < std::max<nanoseconds>(kShortestTick, known_->took * kBusyShare)) return false;
  const DiskFree then = known_->free;
  lock.unlock();
  const auto now = gauge_.Free();
  lock.lock();
  if (!now) return true;
  spent_ = DiskAmount{.bytes = then.bytes, .inodes = then.inodes} -
           DiskAmount{.bytes = now->bytes, .inodes = now->inodes};
  return spent_.bytes >= left.bytes || spent_.inodes >= left.inodes;
}

/// Those who were over when they began may stay there, but not go further.
DiskAmount DiskMeter::Threshold(const DiskRun& run) const {
  return {.bytes = std::max(allowed_.bytes + in_flight_.less.bytes, run.before.bytes),
          .inodes = std::max(allowed_.inodes, run.before.inodes)};
}

DiskAmount DiskMeter::HighestThreshold() const {
  DiskAmount highest;
  for (const Watcher& watcher : watchers_) {
    const DiskAmount threshold = Threshold(*watcher.run);
    highest.bytes = std::max(highest.bytes, threshold.bytes);
    highest.inodes = std::max(highest.inodes, threshold.inodes);
  }
  return highest;
}

bool DiskMeter::AnyOver() const {
  return std::ranges::any_of(watchers_, [this](const Watcher& watcher) {
    return Used().Exceeds(Threshold(*watcher.run));
  });
}

/// Every file counts, as many bytes as there are: only their number is bounded.
void DiskMeter::Look(Lock& lock) {
  const DiskAmount bound{.bytes = workspace::kNoBound.bytes, .inodes = HighestThreshold().inodes};
  auto looked = Learn(lock, bound, CountOnce::kByLinks);
  if (looked && !AnyOver()) return;
  // What was renamed meanwhile may have been counted twice; nobody is killed for that.
  if (looked) looked = Learn(lock, bound, CountOnce::kAlways);
  if (looked || failures_ >= kMostFailures) TellThoseOver();
}

/// A tree that cannot be measured is over.
void DiskMeter::TellThoseOver() {
  for (auto watcher = watchers_.begin(); watcher != watchers_.end();) {
    if (failures_ == 0 && !Used().Exceeds(Threshold(*watcher->run))) {
      ++watcher;
      continue;
    }
    watcher->run->exceeded = Used();
    watcher->loop->Post([exceeded = std::move(watcher->exceeded)] { exceeded(); });
    watcher = watchers_.erase(watcher);
  }
}

// ---- after its end

/// Most executions are too short, or write too little, to have come to the quota.
bool DiskMeter::IsWorthALook(const DiskRun& run, int wait_status) {
  if (run.exceeded || HitFileLimit(wait_status)) return true;
  const DiskAmount left = allowed_ - run.before;
  return wait_status != 0 || Clock::now() - run.began >= TimeToFill(left) / 2;
}

void DiskMeter::Conclude(const std::shared_ptr<DiskRun>& run, int wait_status, Loop& loop,
                         std::function<void(const DiskVerdict&)> done) {
  Lock lock(mu_);
  watchers_.remove_if([&](const Watcher& watcher) { return watcher.run == run; });
  if (stopped_ || !IsWorthALook(*run, wait_status)) {
    const DiskVerdict verdict{.hit = run->exceeded.has_value(), .amount = run->exceeded};
    lock.unlock();
    return done(verdict);
  }
  schedule_.Now(
      [self = shared_from_this(), run, wait_status, &loop, done = std::move(done)]() mutable {
        const DiskVerdict verdict = self->Judge(*run, wait_status);
        loop.Post([verdict, done = std::move(done)] { done(verdict); });
      });
}

/// The free space is a hint that nothing much has been written: other files come and go, those of
/// the sandbox among them.
bool DiskMeter::MayHaveFilled(Lock& lock, int wait_status) {
  if (!known_ || known_->took <= quick_ || HitFileLimit(wait_status)) return true;
  const DiskFree then = known_->free;
  const DiskAmount left = Left();
  lock.unlock();
  const auto now = gauge_.Free();
  lock.lock();
  return !now || then.bytes >= now->bytes + left.bytes / 2 ||
         then.inodes >= now->inodes + left.inodes / 2;
}

/// A program that failed when there was no room for another block, and that had taken some, failed
/// for that; so did one that was stopped at the size that a file may have.
bool DiskMeter::FailedForRoom(const DiskRun& run, int wait_status) const {
  if (wait_status == 0 || !known_) return false;
  const DiskAmount room = allowed_ - Used();
  const bool full = room.bytes < kBlock || room.inodes == 0;
  return (full && Used().Exceeds(run.before)) ||
         (HitFileLimit(wait_status) && known_->largest >= allowed_.bytes);
}

DiskVerdict DiskMeter::Judge(DiskRun& run, int wait_status) {
  Lock lock(mu_);
  DiskVerdict verdict{.hit = run.exceeded.has_value(), .amount = run.exceeded};
  if (!verdict.hit) {
    if (!MayHaveFilled(lock, wait_status)) return verdict;
    if (!Learn(lock, workspace::kNoBound, CountOnce::kAlways, 1)) return verdict;
    verdict.amount = Used();
    verdict.hit = Used().Exceeds(Threshold(run)) || FailedForRoom(run, wait_status);
  }
  if (verdict.hit) verdict.rolled_back = RollBack(lock, run);
  return verdict;
}

bool DiskMeter::RollBack(Lock& lock, const DiskRun& run) {
  if (!run.alone || !run.created || beginnings_ != run.number || undoing_) return false;
  undoing_ = true;
  lock.unlock();
  const bool removed = gauge_.RemoveNewer(*run.created);
  lock.lock();
  ++version_;
  const bool learnt = Learn(lock, workspace::kNoBound, CountOnce::kByLinks, 1).has_value();
  undoing_ = false;
  undone_.notify_all();
  return removed && learnt && Used().inodes <= run.before.inodes;
}

}  // namespace palmshed::backends::native
