// A sandbox's init: sets the sandbox up from inside, gives up every privilege, then serves. The
// main thread reaps orphans, makes slots and stands in where none can be made (pool.h).
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "child/failure.h"
#include "child/host_pids.h"
#include "child/inherited.h"
#include "child/init_birth.h"
#include "child/kernel_abi.h"
#include "child/lifeline.h"
#include "child/message.h"
#include "child/mutex.h"
#include "child/pool.h"
#include "child/raw.h"
#include "child/reaper.h"
#include "child/roles.h"
#include "child/setup.h"
#include "child/signal_queue.h"
#include "child/view.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr std::uint64_t kStuckPauseNs = 10'000'000;
constexpr std::uint64_t kSpareDelayNs = 5'000'000;
constexpr std::uint64_t kMarkBase = std::uint64_t{1} << 40;

// Zero at first, so that it takes no room in the program.
struct SandboxMemory {
  alignas(8) char message[kMaxMessage];
  Pool pool;
};

// ---- setting up

using SetupStep = Failure (*)(const SetupPlan&);
constexpr SetupStep kSetupSteps[] = {MountProc,        AttachTmp,       MountPrivateDirectories,
                                     ShowOwnNames,     AttachWorkspace, MountStorage,
                                     AttachHostMounts, SetUpNames,      DropBoundingSet,
                                     DropPrivileges,   ApplyLandlock,   LoadFilter};
constexpr SetupStep kDirectSteps[] = {HideKeys,       MountPrivateDirectories, EnterWorkspace,
                                      DropPrivileges, ApplyLandlock,           LoadFilter};
constexpr SetupStep kFilteredSteps[] = {JoinKeyring, DropPrivileges, ApplyLandlock, LoadFilter};

// The first two are the start and the configuration.
static_assert(kSetupSteps[kStampViewMade - 2] == SetUpNames);
static_assert(2 + sizeof kSetupSteps / sizeof *kSetupSteps == kStampServing);
static_assert(sizeof InitReply::stamps == (kStampServing + 1) * sizeof(std::uint64_t));

std::span<const SetupStep> StepsFor(const InitConfig& config) {
  if ((config.flags & kInitFiltered) != 0) return kFilteredSteps;
  if ((config.flags & kInitDirect) != 0) return kDirectSteps;
  return kSetupSteps;
}

[[noreturn]] void FailSandbox(const Failure& failure) {
  InitReply reply{};
  reply.answer = InitAnswer::kFailed;
  reply.step = failure.step;
  reply.sys_errno = failure.sys_errno;
  reply.detail = failure.detail;
  (void)SendMessage(kSocketFd, &reply, sizeof reply);
  ExitGroup(1);
}

void MustSucceed(const Failure& failure) {
  if (failure.failed()) FailSandbox(failure);
}

// The descriptors that come along are the sandbox's locks: held until init is dead.
SetupPlan ReadConfig(const char* buffer, const Message& message) {
  SetupPlan plan;
  MustSucceed(ParseInitConfig(buffer, static_cast<std::size_t>(message.size), &plan));
  return plan;
}

Message Receive(char* buffer) {
  const Message message = ReceiveMessage(kSocketFd, buffer, kMaxMessage);
  if (message.gone()) ExitGroup(0);
  if (message.truncated) FailSandbox({Step::kReadConfig, EMFILE});
  return message;
}

// What the stage and the launcher do for the others, and what needs no plan: the engine is still
// finding out what to send. It undoes from outside what takes its privileges; the rest must be
// undone before the memory is hidden, with which goes the way to our own files in /proc.
void StandAlone(std::string_view options) {
  MustSucceed(FailureIf(ResetInherited(), Step::kOpenNull));
  Close(kHelperFd);
  LiftOwnLimits();
  const bool drop_groups = options.find(kDirectDropGroups) != options.npos;
  MustSucceed(TakeIdentity(drop_groups, kInsideUid));
  MustSucceed(FailureIf(HideMemory(), Step::kReadConfig));
  (void)DieWithParent();
  if (HasEnded(kEnginePidfd)) ExitGroup(0);
  Close(kEnginePidfd);
  MustSucceed(SetUpAlone(options.find(kDirectOwnNetwork) != options.npos));
}

// Returns with the InitConfig in `buffer`.
Message MakeOwnView(char* buffer) {
  OwnView view;
  MustSucceed(view.Begin());
  for (;;) {
    const Message message = Receive(buffer);
    ViewPart part{};
    if (message.size >= static_cast<long>(sizeof part)) std::memcpy(&part, buffer, sizeof part);
    if (part.op != InitOp::kView) {
      MustSucceed(view.Finish());
      return message;
    }
    MustSucceed(view.Add({.bytes = buffer + sizeof part,
                          .size = static_cast<std::size_t>(message.size) - sizeof part,
                          .count = part.entries,
                          .trees = message.fds,
                          .tree_count = message.fd_count}));
  }
}

// No privilege means that a hard limit can only be lowered.
Failure PrepareRlimits(const InitConfig& config, Pool* pool) {
  pool->rlimit_count = config.rlimit_count;
  for (std::uint32_t i = 0; i < config.rlimit_count; ++i) {
    Rlimit limit = config.rlimits[i];
    rlimit own{};
    const long known = Call(SYS_prlimit64, 0, limit.resource, nullptr, &own);
    if (known < 0) return FailureIf(known, Step::kRlimit, limit.resource);
    if (limit.hard > own.rlim_max) limit.hard = own.rlim_max;
    if (limit.soft > limit.hard) limit.soft = limit.hard;
    pool->rlimits[i] = limit;
  }
  return kSuccess;
}

// Every layer of Landlock refuses links and renames across directories unless a rule of its own
// allows them, whatever the layer is about (landlock(7), LANDLOCK_ACCESS_FS_REFER).
Failure MakeSignalScope(Pool* pool) {
  const LandlockRuleset attributes{kLandlockRefer, 0, kLandlockScopeSignal};
  const long ruleset = Call(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
  if (ruleset < 0) return FailureIf(ruleset, Step::kSignalScope);
  pool->scope_ruleset = static_cast<int>(ruleset);
  const long root = OpenAt(AT_FDCWD, "/", O_PATH);
  if (root < 0) return FailureIf(root, Step::kSignalScope);
  const LandlockPathBeneath everywhere{kLandlockRefer, static_cast<std::int32_t>(root)};
  const long added = Call(SYS_landlock_add_rule, ruleset, kLandlockRulePathBeneath, &everywhere, 0);
  Close(static_cast<int>(root));
  return FailureIf(added, Step::kSignalScope);
}

Failure PrepareTellingApart(const InitConfig& config, Pool* pool) {
  pool->signal_scope = (config.flags & kInitSignalScope) != 0;
  if (pool->signal_scope) return MakeSignalScope(pool);
  rlimit own{};
  const long known = Call(SYS_prlimit64, 0, RLIMIT_RTTIME, nullptr, &own);
  pool->unmarked = own.rlim_max;
  pool->first_mark = kMarkBase;
  if (known >= 0 && own.rlim_max != RLIM_INFINITY) return {Step::kRlimit, EPERM, RLIMIT_RTTIME};
  return FailureIf(known, Step::kRlimit);
}

// proc_pid_children(5); not every kernel has the file.
int OpenChildren() {
  const long file = OpenAt(AT_FDCWD, "/proc/1/task/1/children", O_RDONLY);
  return file < 0 ? -1 : static_cast<int>(file);
}

Failure PreparePool(const InitConfig& config, Pool* pool) {
  pool->self = static_cast<int>(Call(SYS_getpid));
  pool->proc = (config.flags & kInitNoProc) == 0;
  const long null = OpenAt(AT_FDCWD, "/dev/null", O_RDONLY);
  if (null < 0) return FailureIf(null, Step::kOpenNull);
  pool->null = static_cast<int>(null);
  pool->orphans = pool->host_pids || !pool->proc ? -1 : OpenChildren();
  const long requests = Call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (requests < 0) return FailureIf(requests, Step::kThread);
  pool->requests_to_main = static_cast<int>(requests);
  const Failure limits = PrepareRlimits(config, pool);
  return limits.failed() ? limits : PrepareTellingApart(config, pool);
}

// ---- serving

class MainThread {
 public:
  explicit MainThread(SandboxMemory* memory) : memory_(*memory), pool_(memory->pool) {}

  void SetUp(const char* direct);
  [[noreturn]] void Serve();

 private:
  void Confine(const SetupPlan& plan, std::uint64_t* stamp);
  std::uint64_t PollTimeout() const;
  void TakeRequests();
  void LeadOrMakeSlot();
  void MakeSpare();
  void StandIn();
  bool EndStuckStarts();

  SandboxMemory& memory_;
  Pool& pool_;
  int child_ends_ = -1;
  bool stuck_ = false;  ///< An exec that should be killed hangs.
  /// Of the second slot. Whoever runs one program never needs it, so it is not made while the first
  /// one starts.
  enum class Spare : std::uint8_t { kNotNeeded, kDue, kMade } spare_ = Spare::kNotNeeded;
};

void MainThread::Confine(const SetupPlan& plan, std::uint64_t* stamp) {
  const bool filtered = (plan.config->flags & kInitFiltered) != 0;
  if (filtered) MustSucceed(EnterHostPids(*plan.config, &pool_));
  for (const SetupStep step : StepsFor(*plan.config)) {
    MustSucceed(step(plan));
    *stamp++ = NowNs();
  }
  if (!filtered) return;
  MustSucceed(ProveSignalScope(pool_));
  MustSucceed(StartGuard(&pool_));
  // From here on orphans come to init, not to the supervisor; after the guard, which goes there.
  MustSucceed(FailureIf(Prctl(PR_SET_CHILD_SUBREAPER, 1), Step::kGuard));
}

// `direct`: null, or the options of a direct sandbox.
void MainThread::SetUp(const char* direct) {
  InitReply reply{};
  reply.answer = InitAnswer::kReady;
  std::uint64_t* stamp = reply.stamps;
  *stamp++ = NowNs();
  if (direct == nullptr) MustSucceed(FailureIf(HideMemory(), Step::kReadConfig));
  (void)DieWithParent();
  (void)Prctl(PR_SET_NAME, reinterpret_cast<unsigned long>("palmshed-init"));
  (void)Call(SYS_fcntl, kSocketFd, F_SETFD, FD_CLOEXEC);
  if (direct != nullptr) StandAlone(direct);
  const Message message =
      direct != nullptr ? MakeOwnView(memory_.message) : Receive(memory_.message);
  const SetupPlan plan = ReadConfig(memory_.message, message);
  *stamp++ = NowNs();
  Confine(plan, stamp);
  stamp = reply.stamps + kStampServing;
  const long child_ends = OpenSignalQueue(SIGCHLD);
  MustSucceed(FailureIf(child_ends, Step::kThread));
  child_ends_ = static_cast<int>(child_ends);
  MustSucceed(PreparePool(*plan.config, &pool_));
  Slot* first = nullptr;
  MustSucceed(StartSlot(&pool_, &first));
  *stamp = NowNs();
  if (SendMessage(kSocketFd, &reply, sizeof reply) < 0) ExitGroup(0);
  // The engine need not wait for the thread. No memory for its scope: no sandbox.
  if (AwaitSlot(*first).failed()) ExitGroup(1);
}

// A slot found no other to lead after it, or waits to lead while this thread does.
void MainThread::TakeRequests() {
  std::uint64_t rung;
  (void)Call(SYS_read, pool_.requests_to_main, &rung, sizeof rung);
  pool_.lock.Lock();
  const bool leader_missing = !pool_.led && !IsSlotComing(pool_);
  const bool can_step_down = pool_.led_by_main && pool_.idle > 0;
  pool_.lock.Unlock();
  if (can_step_down) (void)PassLead(&pool_);
  if (leader_missing) LeadOrMakeSlot();
}

void MainThread::LeadOrMakeSlot() {
  const bool first = spare_ == Spare::kNotNeeded;
  spare_ = first ? Spare::kDue : Spare::kMade;
  if (!first && !CreateSlot(&pool_).failed()) return;
  const MutexLock lock(pool_.lock);
  if (pool_.led || IsSlotComing(pool_)) return;  // One has become free in the meantime.
  pool_.led = true;
  pool_.led_by_main = true;
}

// It takes the lead from this thread, or waits for its turn. Where it cannot be had, a request that
// needs it will say so.
void MainThread::MakeSpare() {
  spare_ = Spare::kMade;
  (void)CreateSlot(&pool_);
}

std::uint64_t MainThread::PollTimeout() const {
  if (stuck_) return kStuckPauseNs;
  return spare_ == Spare::kDue ? kSpareDelayNs : kNoTimeout;
}

// The lead goes to a slot as soon as there is one: just ending its execution, or made now. It takes
// the lead itself when it is not waiting yet.
void MainThread::StandIn() {
  pool_.lock.Lock();
  const bool coming = IsSlotComing(pool_);
  pool_.lock.Unlock();
  if (!coming) spare_ = Spare::kMade;
  const Failure failure = coming ? kSuccess : CreateSlot(&pool_);
  if (failure.failed()) {
    ServeWithoutSlot(&pool_, memory_.message, failure);
  } else {
    (void)PassLead(&pool_);
  }
}

// True when one could not be signalled yet: its process is only just being made.
bool MainThread::EndStuckStarts() {
  constexpr std::uint64_t kKill = std::uint64_t{1} << (SIGKILL - 1);
  bool again = false;
  const MutexLock lock(pool_.lock);
  for (std::uint32_t i = 0; i < pool_.slot_count; ++i) {
    const Slot& slot = *pool_.slots[i];
    if (slot.sequence == 0 || !slot.starting) continue;
    if (((slot.all_orders.Load() | slot.main_orders.Load()) & kKill) == 0) continue;
    const int pidfd = slot.pidfd.Load();
    again = true;
    if (pidfd >= 0) (void)Call(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
  }
  return again;
}

// Nobody would end the sandbox after init.
[[noreturn]] void EndUnguarded() {
  KillSandbox();
  ExitGroup(1);
}

void MainThread::Serve() {
  for (;;) {
    pollfd watched[] = {{child_ends_, POLLIN, 0},
                        {pool_.requests_to_main, POLLIN, 0},
                        {pool_.led_by_main ? kSocketFd : -1, POLLIN, 0},
                        {pool_.host_pids ? pool_.guard : -1, POLLIN, 0}};
    const long ready = Poll(watched, 4, PollTimeout());
    if (watched[3].revents != 0) EndUnguarded();
    if (watched[0].revents != 0) {
      DrainSignalQueue(child_ends_);
      ReapOrphans(&pool_);
    }
    if (watched[2].revents != 0) StandIn();
    if (watched[1].revents != 0) TakeRequests();
    if (ready == 0 && spare_ == Spare::kDue) MakeSpare();
    if (stuck_ || watched[1].revents != 0) stuck_ = EndStuckStarts();
  }
}

[[noreturn]] void Run(const char* direct) {
  static SandboxMemory memory;
  MainThread main_thread(&memory);
  main_thread.SetUp(direct);
  main_thread.Serve();
}

}  // namespace

void RunSandbox() { Run(nullptr); }

void RunDirectSandbox(const char* options) { Run(options); }

}  // namespace palmshed::child
