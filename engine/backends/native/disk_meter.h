// A disk quota that is measured.
//
// Theory of operation. Nothing in the kernel keeps a tree of files to a size, so the engine looks:
// before an execution, and again whenever what has been written since could be more than what was
// left. Whether it could is asked cheaply and often, of the free space of the whole file system
// (statfs(2)); others write there too, and delete, so it is asked by the clock as well. The closer
// the quota, the more often. What is over is measured once more, with care, before everything that
// runs in the sandbox is killed for it.
//
// What one file can take is bounded by RLIMIT_FSIZE at the quota (setrlimit(2)), and by
// fallocate(2) being closed (syscall_policy.h): with it, many files of that size appear at once. It
// is not what was left: the limit is one on the size of a file, so one that is larger already could
// not be changed any more, and who deletes has room that the limit knows nothing of.
//
// An execution that began over the quota may delete files, and is killed when it makes it worse.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/native/disk_gauge.h"
#include "base/loop.h"
#include "base/schedule.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/units.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"

namespace palmshed::backends::native {

/// So long an execution may wait for a measurement that it could do without.
inline constexpr std::chrono::milliseconds kQuick{2};

/// What a quota allows. Inodes are room too: without a bound of their own, empty files would pass
/// every limit.
workspace::DiskAmount AllowedBy(Bytes quota);

/// One execution against the quota.
struct DiskRun {
  std::uint64_t number = 0;
  bool alone = false;  ///< Nothing else ran or was written when it began.
  workspace::DiskAmount before{};
  std::optional<workspace::Newness> created{};  ///< Which files are its own, if it stays alone.
  Schedule::Clock::time_point began{};
  std::optional<workspace::DiskAmount> exceeded{};  ///< What was measured then.
};

/// How an execution turned out.
struct DiskVerdict {
  bool hit = false;
  std::optional<workspace::DiskAmount> amount{};  ///< What was measured last.
  bool rolled_back = false;                       ///< With `hit`.
};

/// The quota of one sandbox, on `storage: disk`. Any thread. What takes a while runs on `schedule`.
class DiskMeter final : public workspace::DiskAccount,
                        public std::enable_shared_from_this<DiskMeter> {
 public:
  /// `schedule` is not used after Stop. A measurement that took longer than `quick` is not made
  /// again where there is no need.
  DiskMeter(DiskPlace place, Bytes quota, Schedule& schedule,
            std::chrono::milliseconds quick = kQuick);

  const workspace::DiskAmount& allowed() const { return allowed_; }

  /// Measures, if what is known is not of now. Blocks. The run is counted until End.
  Result<DiskRun> Begin();
  /// `exceeded` runs on the loop's thread, once at most, perhaps even after End.
  void Watch(const std::shared_ptr<DiskRun>& run, Loop& loop, std::function<void()> exceeded);
  /// Once every process of it is dead: looks what became of it, and takes back what it created if
  /// it was killed for it. `done` runs on the loop's thread, at once if there is nothing to look
  /// at.
  void Conclude(const std::shared_ptr<DiskRun>& run, int wait_status, Loop& loop,
                std::function<void(const DiskVerdict&)> done);
  void End(const DiskRun& run);
  /// Measures in a moment, if it has to be, so that the next execution need not wait for it.
  void MeasureSoon();
  /// Nothing is watched any more.
  void Stop();

  Result<std::unique_ptr<workspace::DiskTicket>> Reserve(
      BorrowedFd workspace, const workspace::DiskChange& change) override;
  void NoteRemoval() override;

 private:
  class Ticket;
  struct Watcher {
    std::shared_ptr<DiskRun> run;
    Loop* loop;
    std::function<void()> exceeded;
  };
  using Clock = Schedule::Clock;
  using Lock = std::unique_lock<std::mutex>;

  struct Known {
    workspace::DiskAmount amount{};
    workspace::FileTime newest{};
    std::optional<std::vector<workspace::FileId>> newest_files{};  ///< Unless nobody knows.
    bool births_known = false;
    std::uint64_t largest = 0;
    DiskFree free{};
    Clock::time_point at{};
    std::chrono::nanoseconds took{};
    std::uint64_t version = 0;        ///< It is still so while the meter's is the same.
    workspace::DiskAmount written{};  ///< The meter's `written_` of which all is in `amount`.
  };

  // What is known (disk_meter.cc).
  bool IsCurrent() const;
  bool IsGoodEnough() const;
  bool IsDoubtful() const;
  Result<void> Learn(Lock& lock, const workspace::DiskAmount& bound, workspace::CountOnce once,
                     int ended = 0);
  void RefreshLater();
  void Refresh(std::uint64_t version);
  void AwaitUndone(Lock& lock);
  std::optional<workspace::Newness> NewFrom() const;
  workspace::DiskAmount Used() const;
  workspace::DiskAmount Unmeasured() const;
  Result<void> CheckRoom(Lock& lock, const workspace::DiskChange& change);
  void AwaitWrites(Lock& lock);
  void EndTicket(const workspace::DiskChange& change, bool done, bool current);

  // While it runs, and after (disk_watch.cc).
  void ScheduleTick();
  void Tick(std::uint64_t number);
  bool IsDue(Lock& lock);
  void Look(Lock& lock);
  workspace::DiskAmount Threshold(const DiskRun& run) const;
  workspace::DiskAmount HighestThreshold() const;
  bool AnyOver() const;
  void TellThoseOver();
  std::chrono::milliseconds TimeToFill(const workspace::DiskAmount& left) const;
  workspace::DiskAmount Left() const;
  workspace::DiskAmount LeftByHint() const;
  bool IsWorthALook(const DiskRun& run, int wait_status);
  bool MayHaveFilled(Lock& lock, int wait_status);
  bool FailedForRoom(const DiskRun& run, int wait_status) const;
  DiskVerdict Judge(DiskRun& run, int wait_status);
  bool RollBack(Lock& lock, const DiskRun& run);

  const DiskGauge gauge_;
  const workspace::DiskAmount allowed_;
  const double processors_;
  const std::chrono::milliseconds quick_;
  Schedule& schedule_;

  std::mutex mu_;
  std::condition_variable undone_;
  std::optional<Known> known_{};
  std::uint64_t version_ = 1;  ///< Changes with whatever may change the files.
  int failures_ = 0;           ///< Measurements in a row that failed.
  int running_ = 0;
  int writing_ = 0;
  int settling_ = 0;           ///< Of these, the ones that end without asking for more.
  std::uint64_t settled_ = 0;  ///< So many of them have ended.
  std::condition_variable settle_;
  workspace::DiskChange in_flight_{};  ///< Of what is being written.
  workspace::DiskAmount written_{};    ///< By all writes of the API that have been done.
  std::uint64_t beginnings_ = 0;       ///< Of executions and of writes.
  bool undoing_ = false;               ///< Nobody may begin meanwhile.
  bool look_now_ = false;
  bool refreshing_ = false;        ///< A measurement of what nobody waits for is to come.
  workspace::DiskAmount spent_{};  ///< Since it was measured, by the free space.
  std::list<Watcher> watchers_{};
  std::uint64_t tick_ = 0;  ///< The one that counts: a sooner one takes the place of a later.
  std::optional<Clock::time_point> next_tick_{};
  bool stopped_ = false;
};

}  // namespace palmshed::backends::native
