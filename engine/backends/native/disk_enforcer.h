// The disk quota as one of the limits of an execution.
#pragma once

#include <functional>
#include <memory>

#include "backends/native/disk_gauge.h"
#include "backends/native/disk_meter.h"
#include "backends/native/enforcer.h"
#include "base/schedule.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "workspace/disk_account.h"

namespace palmshed::backends::native {

/// `storage: disk`. The sandbox's executions share one meter.
class MeasuredDisk final : public EnforcerSource {
 public:
  explicit MeasuredDisk(std::shared_ptr<DiskMeter> meter) : meter_(std::move(meter)) {}
  bool NeedsChild() const override { return false; }
  plan::Limits Covered(const plan::Limits& limits) const override { return {.disk = limits.disk}; }
  Result<std::unique_ptr<Enforcer>> Make() override;
  void Close() override { meter_->Stop(); }

 private:
  std::shared_ptr<DiskMeter> meter_;
};

/// A file system of a sandbox's own, and how large it is.
struct SizedPlace {
  Storage storage = Storage::kMemory;
  Bytes quota{};
};

/// `storage: memory` and `loop`: the file system itself is of that size, and refuses what does not
/// fit. What is left to find out is whether a program failed for it.
class SizedDisk final : public EnforcerSource {
 public:
  /// Opens the workspace; may block. An error: the sandbox is gone.
  using Open = std::function<Result<UniqueFd>()>;

  SizedDisk(SizedPlace place, Open open, Schedule& schedule);
  bool NeedsChild() const override { return false; }
  plan::Limits Covered(const plan::Limits& limits) const override { return {.disk = limits.disk}; }
  Result<std::unique_ptr<Enforcer>> Make() override;
  void Close() override;

 private:
  SizedPlace place_;
  std::shared_ptr<class WorkspaceDoor> door_;
  Schedule& schedule_;
};

/// The disk of a sandbox that has a quota.
struct SandboxDisk {
  Storage storage = Storage::kDisk;
  Bytes quota{};
  DiskPlace place{};   ///< With Storage::kDisk.
  Schedule* schedule;  ///< Outlives the sandbox.
};

/// What holds a sandbox to its quota: executions, and writes of the API.
struct DiskLimit {
  std::shared_ptr<EnforcerSource> source;
  std::shared_ptr<workspace::DiskAccount> account;
};

DiskLimit MakeDiskLimit(const SandboxDisk& disk, SizedDisk::Open open);

}  // namespace palmshed::backends::native
