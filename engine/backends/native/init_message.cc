#include "backends/native/init_message.h"

#include <linux/filter.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "backends/native/syscall_policy.h"
#include "backends/native/view.h"
#include "base/bytes.h"
#include "base/faults.h"
#include "child/wire.h"
#include "kernel/landlock.h"
#include "palmshed/options.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "workspace/disk_usage.h"

namespace palmshed::backends::native {
namespace {

constexpr std::uint64_t kUnlimited = RLIM_INFINITY;
constexpr std::uint64_t kShmBytes = 256U << 20;

// Set in every workload, never inherited from the engine (a hard limit that is lower there stays:
// only root with CAP_SYS_RESOURCE could raise it). The values are those of a login on Debian 12
// where the kernel's own default would surprise programs.
constexpr std::array<child::Rlimit, 15> kRlimits{{
    {RLIMIT_CPU, 0, kUnlimited, kUnlimited},
    {RLIMIT_FSIZE, 0, kUnlimited, kUnlimited},
    {RLIMIT_DATA, 0, kUnlimited, kUnlimited},
    {RLIMIT_STACK, 0, 8U << 20, kUnlimited},
    {RLIMIT_CORE, 0, 0, 0},
    {RLIMIT_RSS, 0, kUnlimited, kUnlimited},
    {RLIMIT_NPROC, 0, kUnlimited, kUnlimited},
    {RLIMIT_NOFILE, 0, 1024, 524288},
    {RLIMIT_MEMLOCK, 0, 8U << 20, 8U << 20},
    {RLIMIT_AS, 0, kUnlimited, kUnlimited},
    {RLIMIT_LOCKS, 0, kUnlimited, kUnlimited},
    {RLIMIT_SIGPENDING, 0, 32768, 32768},
    {RLIMIT_MSGQUEUE, 0, 819200, 819200},
    {RLIMIT_NICE, 0, 0, 0},
    {RLIMIT_RTPRIO, 0, 0, 0},
}};
static_assert(kRlimits.size() <= child::kMaxRlimits);

std::uint32_t FlagsFor(const plan::SandboxPlan& plan, int landlock_abi) {
  std::uint32_t flags = plan.filtered_view ? child::kInitFiltered : 0;
  if (plan.network == Network::kDisabled) flags |= child::kInitLoopback;
  if (!plan.proc) flags |= child::kInitNoProc;
  // Scopes for signals tell the executions of a sandbox apart.
  if (landlock_abi >= kernel::kLandlockAbiWithScopes) flags |= child::kInitSignalScope;
  return flags;
}

}  // namespace

std::span<const sock_filter> Filters::For(FilterChoice choice) {
  const std::lock_guard lock(mu_);
  const std::size_t variant = choice.measured_disk ? kFilterKinds : 0;
  std::vector<sock_filter>& program = programs_[static_cast<std::size_t>(choice.kind) + variant];
  if (program.empty()) program = BuildFilter(choice);
  return program;
}

FilterChoice FilterFor(const plan::SandboxPlan& plan) {
  const bool measured = plan.ceilings.disk != Bytes{} && plan.storage == Storage::kDisk;
  FilterKind kind = plan.private_view ? FilterKind::kPrivate : FilterKind::kHostFiles;
  if (plan.filtered_view) {
    kind = plan.network == Network::kDisabled ? FilterKind::kFilteredOffline
                                              : FilterKind::kFilteredOnline;
  }
  return {kind, measured && !Faulty("fallocate-allowed")};
}

std::vector<std::byte> EncodeInit(const plan::SandboxPlan& plan, const View& view,
                                  std::span<const sock_filter> filter, int landlock_abi,
                                  bool direct, const workspace::DiskAmount& storage) {
  constexpr std::array kAllowAll{sock_filter BPF_STMT(BPF_RET | BPF_K, 0x7fff0000U)};
  if (Faulty("no-seccomp")) filter = kAllowAll;
  const kernel::LandlockRights handled =
      Faulty("no-landlock") ? kernel::LandlockRights{} : view.handled;
  const std::span<const LandlockRulePlan> rules =
      Faulty("no-landlock") ? std::span<const LandlockRulePlan>() : view.rules;

  child::InitConfig config{};
  config.op = child::InitOp::kConfig;
  config.flags = FlagsFor(plan, landlock_abi) | (direct ? child::kInitDirect : 0U) |
                 (view.any_uid ? child::kInitOwnNames : 0U);
  config.filter_instructions = static_cast<std::uint32_t>(filter.size());
  config.rules = static_cast<std::uint32_t>(rules.size());
  config.rlimit_count = Faulty("no-rlimits") ? 0 : kRlimits.size();
  config.handled_fs = handled.fs;
  config.handled_net = handled.net;
  config.scoped = handled.scoped;
  config.shm_bytes = kShmBytes;
  config.storage_bytes = storage.bytes;
  config.storage_inodes = storage.inodes;
  const std::vector<std::byte> host_mounts = EncodeView(view.host_mounts);
  config.host_mounts = static_cast<std::uint32_t>(view.host_mounts.size());
  config.host_mount_bytes = host_mounts.size();
  std::ranges::copy(kRlimits, config.rlimits);

  std::vector<std::byte> message;
  Append(message, BytesOf(config));
  Append(message, std::as_bytes(filter));
  Append(message, host_mounts);
  Append(message, EncodeRules(rules));
  return message;
}

}  // namespace palmshed::backends::native
