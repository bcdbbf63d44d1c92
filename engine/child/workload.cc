#include "child/workload.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

#include "child/failure.h"
#include "child/raw.h"
#include "child/terminal.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

// Somebody's child may hold a program open for writing for as long as it takes from its fork to its
// exec; nobody else can tell, so the exec waits a little (execve(2), ETXTBSY).
constexpr int kBusyAttempts = 100;
constexpr std::uint64_t kBusyPauseNs = 1'000'000;

Failure ConnectStdio(const WorkloadPlan& plan) {
  for (int fd = 0; fd <= 2; ++fd) {
    const long result = Call(SYS_dup3, plan.stdio[fd], fd, 0);
    if (result < 0) return FailureIf(result, Step::kStdio);
  }
  return kSuccess;
}

Failure SetLimit(std::uint32_t resource, std::uint64_t soft, std::uint64_t hard) {
  const rlimit limit{soft, hard};
  return FailureIf(Call(SYS_prlimit64, 0, resource, &limit, nullptr), Step::kRlimit, resource);
}

Failure SetOwnLimits(const WorkloadPlan& plan) {
  const struct {
    std::uint32_t resource;
    std::uint64_t value;
  } own[] = {{RLIMIT_FSIZE, plan.file_bytes},
             {RLIMIT_CPU, plan.cpu_seconds},
             {RLIMIT_NPROC, plan.processes},
             {RLIMIT_RTTIME, plan.mark}};
  for (const auto& [resource, value] : own) {
    const Failure failure = value == 0 ? kSuccess : SetLimit(resource, value, value);
    if (failure.failed()) return failure;
  }
  return kSuccess;
}

// Returns only when it failed.
long Execute(const char* path, const WorkloadPlan& plan) {
  long result = 0;
  for (int attempt = 0; attempt < kBusyAttempts; ++attempt) {
    result = Call(SYS_execve, path, plan.arguments, plan.environment);
    if (result != -ETXTBSY) return result;
    SleepNs(kBusyPauseNs);
  }
  return result;
}

// The better of two failures is the one that says more: a file that may not be executed over one
// that cannot be (a missing interpreter) over none at all.
int Weight(const Failure& failure) {
  if (failure.sys_errno == EACCES) return 3;
  return failure.detail != 0 ? 2 : failure.failed() ? 1 : 0;
}

bool TriesNext(long result) { return result == -ENOENT || result == -ENOTDIR || result == -EACCES; }

Failure ExecuteFirst(const WorkloadPlan& plan) {
  Failure best{};
  for (std::uint32_t i = 0; i < plan.path_count; ++i) {
    const long result = Execute(plan.paths[i], plan);
    const bool exists = Call(SYS_faccessat, AT_FDCWD, plan.paths[i], F_OK) >= 0;
    const Failure failure = FailureIf(result, Step::kExec, exists ? 1U : 0U);
    if (!TriesNext(result)) return failure;
    if (Weight(failure) > Weight(best)) best = failure;
  }
  return best.failed() ? best : Failure{Step::kExec, ENOENT};
}

// Dispositions are standard: init has no handlers and ignores nothing.
Failure BecomeWorkload(const WorkloadPlan& plan) {
  const Failure settled = plan.settled ? kSuccess : SettleWorkload(plan.rlimits, plan.rlimit_count);
  if (settled.failed()) return settled;
  const Failure connected = plan.terminal.asked ? TakeTerminal(plan.terminal) : ConnectStdio(plan);
  if (connected.failed()) return connected;
  const long entered = Call(SYS_chdir, plan.directory);
  if (entered < 0) return FailureIf(entered, Step::kChdir);
  const Failure limited = SetOwnLimits(plan);
  if (limited.failed()) return limited;
  const long closed = Call(SYS_close_range, 3, ~0U, 0);
  if (closed < 0) return FailureIf(closed, Step::kStdio);
  const std::uint64_t no_signals = 0;
  (void)Call(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, nullptr, sizeof no_signals);
  return ExecuteFirst(plan);
}

}  // namespace

Failure SettleWorkload(const Rlimit* rlimits, std::uint32_t count) {
  (void)Call(SYS_setsid);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Failure failure = SetLimit(rlimits[i].resource, rlimits[i].soft, rlimits[i].hard);
    if (failure.failed()) return failure;
  }
  return kSuccess;
}

void BecomeWorkloadInChild(void* shared) {
  auto* const plan = static_cast<WorkloadPlan*>(shared);
  plan->failure = BecomeWorkload(*plan);
  ExitGroup(127);
}

}  // namespace palmshed::child
