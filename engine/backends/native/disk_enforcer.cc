#include "backends/native/disk_enforcer.h"

#include <sys/statvfs.h>
#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "backends/backend.h"
#include "backends/native/disk_meter.h"
#include "backends/native/enforcer.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/schedule.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"

namespace palmshed::backends::native {

/// The way to a sandbox's workspace, for as long as there is a sandbox.
class WorkspaceDoor {
 public:
  explicit WorkspaceDoor(SizedDisk::Open open) : open_(std::move(open)) {}

  Result<UniqueFd> Open() {
    {
      const std::lock_guard lock(mu_);
      if (shut_) {
        return std::unexpected(
            Error{.code = ErrorCode::kBackendLost, .message = "the sandbox is gone"});
      }
      ++inside_;
    }
    auto opened = open_();
    const std::lock_guard lock(mu_);
    --inside_;
    left_.notify_all();
    return opened;
  }

  void Shut() {
    std::unique_lock lock(mu_);
    shut_ = true;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  SizedDisk::Open open_;
  std::mutex mu_;
  std::condition_variable left_;
  int inside_ = 0;
  bool shut_ = false;
};

namespace {

using workspace::DiskAmount;

void AddAmount(const DiskAmount& amount, Enforced& enforced) {
  enforced.evidence.emplace_back("disk_bytes", static_cast<std::int64_t>(amount.bytes));
  enforced.evidence.emplace_back("disk_inodes", static_cast<std::int64_t>(amount.inodes));
}

/// What is under way to the loop's thread when an execution ends must not arrive: its sandbox may
/// be gone by then, and the enforcer may be another execution's.
class Lifetime {
 public:
  void Begin() { held_ = std::make_shared<char>(); }
  void End() { held_.reset(); }
  /// Runs `call` only until the end. Nobody else holds what it looks at, so it is over at once.
  template <class Call>
  auto While(Call call) const {
    return [held = std::weak_ptr(held_), call = std::move(call)](const auto&... arguments) {
      if (!held.expired()) call(arguments...);
    };
  }

 private:
  std::shared_ptr<char> held_;
};

// ---- storage: disk

class MeasuringEnforcer final : public Enforcer {
 public:
  explicit MeasuringEnforcer(std::shared_ptr<DiskMeter> meter) : meter_(std::move(meter)) {}
  MeasuringEnforcer(const MeasuringEnforcer&) = delete;
  MeasuringEnforcer& operator=(const MeasuringEnforcer&) = delete;
  ~MeasuringEnforcer() override {
    if (run_) meter_->End(*run_);
    meter_->MeasureSoon();
  }

  bool NeedsChild() const override { return false; }
  Result<void> Adopt(pid_t, ChildRole) override { return {}; }
  Result<void> Begin(const plan::Limits& limits, CarriedLimits& carried) override {
    if (limits.disk == Bytes{}) return {};
    auto run = meter_->Begin();
    if (!run) return std::unexpected(std::move(run.error()));
    const std::uint64_t quota = meter_->allowed().bytes;
    if (carried.file_bytes == 0 || carried.file_bytes > quota) carried.file_bytes = quota;
    run_ = std::make_shared<DiskRun>(*std::move(run));
    lifetime_.Begin();
    return {};
  }
  void Watch(Loop& loop, std::function<void()> exceeded) override {
    if (run_) meter_->Watch(run_, loop, lifetime_.While(std::move(exceeded)));
  }
  void Kill() override {}
  void Conclude(int wait_status, Loop& loop, std::function<void()> concluded) override {
    if (!run_) return concluded();
    meter_->Conclude(
        run_, wait_status, loop,
        lifetime_.While([this, concluded = std::move(concluded)](const DiskVerdict& verdict) {
          verdict_ = verdict;
          concluded();
        }));
  }
  Enforced Finish() override;
  bool Reusable() const override { return true; }

 private:
  std::shared_ptr<DiskMeter> meter_;
  std::shared_ptr<DiskRun> run_{};  ///< Shared with whoever measures.
  Lifetime lifetime_;
  DiskVerdict verdict_{};
};

Enforced MeasuringEnforcer::Finish() {
  Enforced enforced;
  if (!run_) return enforced;
  if (verdict_.amount) AddAmount(*verdict_.amount, enforced);
  if (verdict_.hit) {
    enforced.hit = LimitHit{.cause = Cause::kDisk,
                            .limit = meter_->allowed().bytes,
                            .observed = verdict_.amount ? verdict_.amount->bytes : 0};
    enforced.evidence.emplace_back("disk_inodes_limit",
                                   static_cast<std::int64_t>(meter_->allowed().inodes));
    enforced.evidence.emplace_back("rolledBack", verdict_.rolled_back ? 1 : 0);
  }
  meter_->End(*run_);
  lifetime_.End();
  run_.reset();
  verdict_ = {};
  return enforced;
}

// ---- storage: memory, loop

/// Less than a block of any file system in use.
constexpr std::uint64_t kNothing = 4096;
/// A write goes into the page cache by folios, and ext4 refuses one as a whole when there is room
/// for a part of it only. Since it has large ones (Linux 6.16) they have up to this size.
constexpr std::uint64_t kLargestFolio = 2U << 20;

struct SizedState {
  std::uint64_t used = 0;
  std::uint64_t available = 0;
  std::uint64_t inodes_available = 0;
  std::uint64_t inodes_used = 0;
};

Result<SizedState> StateOf(BorrowedFd workspace) {
  PALMSHED_TRY(const struct statvfs st, sys::Fstatvfs(workspace));
  return SizedState{.used = (st.f_blocks - st.f_bfree) * st.f_frsize,
                    .available = st.f_bavail * st.f_frsize,
                    .inodes_available = st.f_favail,
                    .inodes_used = st.f_files - st.f_ffree};
}

Result<SizedState> StateBehind(WorkspaceDoor& door) {
  PALMSHED_TRY(const UniqueFd workspace, door.Open());
  return StateOf(workspace.get());
}

class SizedEnforcer final : public Enforcer {
 public:
  SizedEnforcer(SizedPlace place, std::shared_ptr<WorkspaceDoor> door, Schedule& schedule)
      : place_(place), door_(std::move(door)), schedule_(schedule) {}

  bool NeedsChild() const override { return false; }
  Result<void> Adopt(pid_t, ChildRole) override { return {}; }
  Result<void> Begin(const plan::Limits&, CarriedLimits&) override;
  void Watch(Loop&, std::function<void()>) override {}
  void Kill() override {}
  void Conclude(int wait_status, Loop& loop, std::function<void()> concluded) override;
  Enforced Finish() override;
  bool Reusable() const override { return true; }

 private:
  bool RanOutOfRoom(const SizedState& now) const;

  SizedPlace place_;
  std::shared_ptr<WorkspaceDoor> door_;
  Schedule& schedule_;
  std::uint64_t used_before_ = 0;  ///< Of an image.
  Lifetime lifetime_;
  std::optional<SizedState> state_;
};

Result<void> SizedEnforcer::Begin(const plan::Limits&, CarriedLimits&) {
  lifetime_.Begin();
  if (place_.storage == Storage::kLoop) {
    PALMSHED_TRY(const SizedState state, StateBehind(*door_));
    used_before_ = state.used;
  }
  return schedule_.Start();
}

/// Of a program that failed. Where a little room is left it must have taken some.
bool SizedEnforcer::RanOutOfRoom(const SizedState& now) const {
  if (now.available < kNothing || now.inodes_available == 0) return true;
  const bool loop = place_.storage == Storage::kLoop;
  return loop && now.available < kLargestFolio && now.used > used_before_;
}

void SizedEnforcer::Conclude(int wait_status, Loop& loop, std::function<void()> concluded) {
  if (wait_status == 0) return concluded();
  auto take =
      lifetime_.While([this, concluded = std::move(concluded)](const Result<SizedState>& found) {
        if (found) state_ = *found;
        concluded();
      });
  schedule_.Now([door = door_, &loop, take = std::move(take)]() mutable {
    loop.Post([found = StateBehind(*door), take = std::move(take)] { take(found); });
  });
}

Enforced SizedEnforcer::Finish() {
  lifetime_.End();
  Enforced enforced;
  if (const auto state = std::exchange(state_, std::nullopt)) {
    AddAmount({.bytes = state->used, .inodes = state->inodes_used}, enforced);
    if (RanOutOfRoom(*state)) {
      enforced.hit =
          LimitHit{.cause = Cause::kDisk, .limit = Count(place_.quota), .observed = state->used};
      enforced.evidence.emplace_back("rolledBack", 0);
    }
  }
  return enforced;
}

class SizedAccount final : public workspace::DiskAccount {
 public:
  explicit SizedAccount(Bytes quota) : quota_(quota) {}

  Result<std::unique_ptr<workspace::DiskTicket>> Reserve(
      BorrowedFd workspace, const workspace::DiskChange& change) override {
    PALMSHED_TRY(const SizedState state, StateOf(workspace));
    if (change.more.bytes > state.available || change.more.inodes > state.inodes_available) {
      return std::unexpected(workspace::QuotaExceeded(Count(quota_), state.used, change.more));
    }
    return std::make_unique<Ticket>();
  }
  void NoteRemoval() override {}

 private:
  class Ticket final : public workspace::DiskTicket {
   public:
    void Done() override {}
  };

  Bytes quota_;
};

}  // namespace

Result<std::unique_ptr<Enforcer>> MeasuredDisk::Make() {
  return std::make_unique<MeasuringEnforcer>(meter_);
}

SizedDisk::SizedDisk(SizedPlace place, Open open, Schedule& schedule)
    : place_(place), door_(std::make_shared<WorkspaceDoor>(std::move(open))), schedule_(schedule) {}

void SizedDisk::Close() { door_->Shut(); }

Result<std::unique_ptr<Enforcer>> SizedDisk::Make() {
  return std::make_unique<SizedEnforcer>(place_, door_, schedule_);
}

DiskLimit MakeDiskLimit(const SandboxDisk& disk, SizedDisk::Open open) {
  if (disk.storage == Storage::kDisk) {
    auto meter = std::make_shared<DiskMeter>(disk.place, disk.quota, *disk.schedule);
    return {.source = std::make_shared<MeasuredDisk>(meter), .account = meter};
  }
  // What a write replaces stays until it is complete, so it gives nothing back before.
  const SizedPlace place{.storage = disk.storage, .quota = disk.quota};
  return {.source = std::make_shared<SizedDisk>(place, std::move(open), *disk.schedule),
          .account = std::make_shared<SizedAccount>(disk.quota)};
}

}  // namespace palmshed::backends::native
