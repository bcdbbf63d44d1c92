#include "backends/native/disk_meter.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backends/native/disk_gauge.h"
#include "base/faults.h"
#include "base/processors.h"
#include "base/result.h"
#include "base/schedule.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/units.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"
#include "workspace/remove_newer.h"

namespace palmshed::backends::native {
namespace {

using std::chrono::milliseconds;
using workspace::CountOnce;
using workspace::DiskAmount;
using workspace::DiskChange;
using workspace::FileTime;

constexpr std::uint64_t kBytesPerInode = 4096;
constexpr std::uint64_t kLeastInodes = 20'000;

/// For how long a measurement will do while something runs that is being watched.
constexpr milliseconds kRecent{250};
/// After an execution, so as not to be in the way of one that follows right after it.
constexpr milliseconds kSettled{2};
/// Before a write is refused, if others end while it is measured.
constexpr int kMostMeasurements = 3;

/// The clock that kernels give files their times by: a tick may be milliseconds.
FileTime TickNow() {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return {.seconds = now.tv_sec, .nanoseconds = static_cast<std::uint32_t>(now.tv_nsec)};
}

}  // namespace

DiskAmount AllowedBy(Bytes quota) {
  const std::uint64_t inodes = std::max(kLeastInodes, Count(quota) / kBytesPerInode);
  return {.bytes = Count(quota),
          .inodes = Faulty("inodes-are-free") ? workspace::kNoBound.inodes : inodes};
}

DiskMeter::DiskMeter(DiskPlace place, Bytes quota, Schedule& schedule, milliseconds quick)
    : gauge_(std::move(place)),
      allowed_(AllowedBy(quota)),
      processors_(OnlineProcessors()),
      quick_(quick),
      schedule_(schedule) {}

// ---- what is known

bool DiskMeter::IsCurrent() const {
  return known_ && known_->version == version_ && running_ == 0 && writing_ == 0;
}

/// Far from the quota, a large tree need not be measured on the way of an execution: that is done
/// as soon as it runs.
bool DiskMeter::IsGoodEnough() const {
  const DiskAmount half{.bytes = allowed_.bytes / 2, .inodes = allowed_.inodes / 2};
  return known_ && known_->took > quick_ && failures_ == 0 && !known_->amount.Exceeds(half);
}

/// Of those that count as running, `ended` have ended.
Result<void> DiskMeter::Learn(Lock& lock, const DiskAmount& bound, CountOnce once, int ended) {
  const std::uint64_t version = running_ == ended && writing_ == 0 ? version_ : 0;
  const bool any_runs = running_ > ended;
  const DiskAmount written = written_;
  const auto begin = Clock::now();
  lock.unlock();
  auto measure = gauge_.Measure(bound, once, any_runs);
  lock.lock();
  if (!measure) {
    ++failures_;
    return std::unexpected(std::move(measure.error()));
  }
  failures_ = 0;
  spent_ = {};
  workspace::DiskUsage& usage = measure->usage;
  known_ = Known{.amount = usage.amount(),
                 .newest = usage.newest(),
                 .newest_files = usage.TakeNewestFiles(),
                 .births_known = usage.births_known(),
                 .largest = usage.largest(),
                 .free = measure->free,
                 .at = begin,
                 .took = measure->took,
                 .version = version,
                 .written = written};
  return {};
}

void DiskMeter::AwaitUndone(Lock& lock) {
  undone_.wait(lock, [this] { return !undoing_; });
}

/// Something has been written in this very tick of the clock, and nobody has counted it.
bool DiskMeter::IsDoubtful() const {
  return known_ && !known_->newest_files && known_->newest >= TickNow();
}

/// What is there already was born up to the latest birth, and what comes is born then or later:
/// were the latest birth not known, a file of somebody else could pass for new.
std::optional<workspace::Newness> DiskMeter::NewFrom() const {
  if (!IsCurrent() || !known_->births_known) return std::nullopt;
  const FileTime now = TickNow();
  if (known_->newest < now) {
    return workspace::Newness{.since = now, .but = std::vector<workspace::FileId>()};
  }
  return workspace::Newness{.since = known_->newest, .but = known_->newest_files};
}

DiskAmount DiskMeter::Used() const { return known_ ? known_->amount : DiskAmount{}; }

/// What writes of the API have taken that a measurement may have missed, because they ended while
/// it was under way or after it. Some of it may be in `Used` as well.
DiskAmount DiskMeter::Unmeasured() const {
  return written_ - (known_ ? known_->written : DiskAmount{});
}

// ---- executions

Result<DiskRun> DiskMeter::Begin() {
  PALMSHED_TRY_VOID(schedule_.Start());
  Lock lock(mu_);
  AwaitUndone(lock);
  const bool doubtful = IsDoubtful() && known_->took <= quick_;
  if (doubtful || (!IsCurrent() && !IsGoodEnough())) {
    PALMSHED_TRY_VOID(Learn(lock, workspace::kNoBound, CountOnce::kByLinks));
    AwaitUndone(lock);
  }
  look_now_ = look_now_ || !IsCurrent();
  const DiskAmount used = Used();
  DiskRun run{.number = ++beginnings_,
              .alone = running_ == 0 && writing_ == 0,
              .before = used,
              .created = NewFrom(),
              .began = Clock::now()};
  ++running_;
  ++version_;
  return run;
}

void DiskMeter::End(const DiskRun& run) {
  const std::lock_guard lock(mu_);
  watchers_.remove_if([&](const Watcher& watcher) { return watcher.run.get() == &run; });
  --running_;
  ++version_;
  // Nothing has run or been written since it was looked at.
  if (known_ && known_->version == version_ - 1 && running_ == 0) known_->version = version_;
}

void DiskMeter::MeasureSoon() {
  const std::lock_guard lock(mu_);
  RefreshLater();
}

void DiskMeter::RefreshLater() {
  if (refreshing_ || stopped_ || running_ > 0 || IsCurrent()) return;
  if (!known_ || known_->took > quick_) return;
  refreshing_ = true;
  schedule_.At(Clock::now() + kSettled, [weak = weak_from_this(), version = version_] {
    if (const auto meter = weak.lock()) meter->Refresh(version);
  });
}

void DiskMeter::Refresh(std::uint64_t version) {
  Lock lock(mu_);
  refreshing_ = false;
  if (version != version_) return RefreshLater();
  if (stopped_ || undoing_ || IsCurrent()) return;
  (void)Learn(lock, workspace::kNoBound, CountOnce::kByLinks);
}

void DiskMeter::Stop() {
  const std::lock_guard lock(mu_);
  stopped_ = true;
  watchers_.clear();
}

// ---- writes of the API

class DiskMeter::Ticket final : public workspace::DiskTicket {
 public:
  Ticket(std::shared_ptr<DiskMeter> meter, const DiskChange& change, bool current)
      : meter_(std::move(meter)), change_(change), current_(current) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() override { meter_->EndTicket(change_, done_, current_); }
  void Done() override { done_ = true; }

 private:
  std::shared_ptr<DiskMeter> meter_;
  DiskChange change_;
  bool current_;
  bool done_ = false;
};

/// Those of now have ended, or as many others.
void DiskMeter::AwaitWrites(Lock& lock) {
  settle_.wait(lock, [this, all = settled_ + static_cast<std::uint64_t>(settling_)] {
    return settled_ >= all;
  });
}

/// While programs run what is known is watched over; else it is exact, or found out. Nothing is
/// refused by an old number, nor by one that counts what is under way twice, as written and as
/// promised: who has asked for all that it needs is waited for. It waits for nobody, and others
/// are let in only where there is room, so that this ends.
Result<void> DiskMeter::CheckRoom(Lock& lock, const DiskChange& change) {
  const auto fits = [&] {
    if (Faulty("api-over-quota")) return true;
    DiskAmount then = Used();
    then += Unmeasured();
    then += in_flight_.more;
    then += change.more;
    return !(then - change.less).Exceeds(allowed_);
  };
  const bool recent = known_ && running_ > 0 && Clock::now() - known_->at < kRecent;
  if ((IsCurrent() || recent) && fits()) return {};
  for (int measured = 1;; ++measured) {
    PALMSHED_TRY_VOID(Learn(lock, workspace::kNoBound, CountOnce::kByLinks));
    if (fits()) return {};
    if (Unmeasured().Exceeds({}) && measured < kMostMeasurements) continue;
    if (settling_ == 0) break;
    AwaitWrites(lock);
    measured = 0;
  }
  return std::unexpected(workspace::QuotaExceeded(allowed_.bytes, Used().bytes, change.more));
}

Result<std::unique_ptr<workspace::DiskTicket>> DiskMeter::Reserve(BorrowedFd /*workspace*/,
                                                                  const DiskChange& change) {
  Lock lock(mu_);
  AwaitUndone(lock);
  PALMSHED_TRY_VOID(CheckRoom(lock, change));
  AwaitUndone(lock);
  const bool current = IsCurrent();
  ++writing_;
  settling_ += change.grows ? 0 : 1;
  ++beginnings_;
  ++version_;
  in_flight_.more += change.more;
  in_flight_.less += change.less;
  return std::make_unique<Ticket>(shared_from_this(), change, current);
}

/// Many small writes one after another need no measurement each: what they took is known.
void DiskMeter::EndTicket(const DiskChange& change, bool done, bool current) {
  const std::lock_guard lock(mu_);
  --writing_;
  if (!change.grows) {
    --settling_;
    ++settled_;
    settle_.notify_all();
  }
  in_flight_.more = in_flight_.more - change.more;
  in_flight_.less = in_flight_.less - change.less;
  const bool alone = current && known_ && known_->version == version_ - 1;
  ++version_;
  if (done) written_ += change.more;
  if (!done || !alone || running_ > 0 || writing_ > 0) return;
  known_->written += change.more;
  known_->amount += change.more;
  known_->amount = known_->amount - change.less;
  known_->newest = std::max(known_->newest, TickNow());
  known_->newest_files.reset();
  known_->version = version_;
}

void DiskMeter::NoteRemoval() {
  const std::lock_guard lock(mu_);
  ++version_;
}

}  // namespace palmshed::backends::native
