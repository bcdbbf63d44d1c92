#include "backends/native/direct.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/native/host.h"
#include "backends/native/launcher.h"
#include "backends/native/rungs.h"
#include "backends/native/view.h"
#include "base/bytes.h"
#include "base/faults.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "child/failure.h"
#include "child/init_birth.h"
#include "child/tree.h"
#include "child/wire.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {
namespace {

/// Of one message. So many descriptors at most are open here at a time.
constexpr std::size_t kItemsPerPart = 64;
static_assert(kItemsPerPart <= child::kMaxFds);
constexpr int kIoPriorityProcess = 1;  // linux/ioprio.h: IOPRIO_WHO_PROCESS

Error ErrorOf(const child::Failure& failure) {
  return StepError(ErrorCode::kUnsupported, failure.step, failure.sys_errno, failure.detail);
}

/// What a process takes over from the one that made it, and needs the engine's privileges to undo.
/// Best effort, as in child/inherited.h, of which this is the other half.
void ResetFromOutside(pid_t pid) {
  const sched_param normal{};
  (void)::sched_setscheduler(pid, SCHED_OTHER, &normal);
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 0);
  (void)::syscall(SYS_ioprio_set, kIoPriorityProcess, pid, 0);
  const auto file = sys::Open("/proc/" + std::to_string(pid) + "/oom_score_adj", O_WRONLY);
  if (file) (void)sys::WriteAll(file->get(), std::as_bytes(std::span("0", 1)));
}

/// False when there is nothing to show.
Result<bool> OpenTree(ViewItem& item, std::vector<UniqueFd>& trees) {
  const long tree = child::CopyTree(item.b.c_str(), item.flags);
  const bool missing = tree == -ENOENT || tree == -ENOTDIR;
  if (missing && (item.flags & child::kViewOptional) != 0) return false;
  if (tree < 0) return std::unexpected(SysError("open_tree", static_cast<int>(-tree), item.b));
  item.flags |= child::kViewTree;
  item.tree = static_cast<std::uint32_t>(trees.size());
  trees.emplace_back(static_cast<int>(tree));
  return true;
}

}  // namespace

Result<std::unique_ptr<DirectInit>> DirectInit::Begin(Loop& loop, Kind kind) {
  std::unique_ptr<DirectInit> init(new DirectInit);
  PALMSHED_TRY_VOID(init->Prepare(kind));
  child::Failure cloned;
  // The loop's thread, since the parent-death signal follows the thread (prctl(2)).
  loop.Run([&] { cloned = child::CloneInit(&init->birth_, CLONE_NEWUSER | CLONE_NEWPID); });
  if (cloned.failed()) return std::unexpected(ErrorOf(cloned));
  init->cloned_ = true;
  return init;
}

Result<void> DirectInit::Prepare(Kind kind) {
  if (Faulty("no-direct")) return std::unexpected(SysError("clone", EPERM));
  PALMSHED_TRY(auto sockets, sys::SocketPair());
  PALMSHED_TRY(engine_, sys::PidfdOpen(::getpid()));
  socket_ = std::move(sockets.first);
  init_socket_ = std::move(sockets.second);
  own_network_ = !kind.host_network && !Faulty("host-network");
  constexpr unsigned long kAlways = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  birth_.plan = {.role = "direct",
                 .option = nullptr,
                 .maker = engine_.get(),
                 .fds = {init_socket_.get(), engine_.get(), engine_.get()},
                 .helper = -1,
                 .namespaces = own_network_ ? kAlways | CLONE_NEWNET : kAlways,
                 .late_identity = true,
                 .drop_groups = false,
                 .id = child::kInsideUid};
  return {};
}

Result<void> DirectInit::Identify(const Host& host, Ids ids) {
  if (host.spare_gid) {
    return std::unexpected(
        Error{.code = ErrorCode::kUnsupported, .message = "groups are dropped by way of a stage"});
  }
  root_ = host.root;
  birth_.plan.helper = host.helper.get();
  if (own_network_) options_ += child::kDirectOwnNetwork;
  if (host.root) options_ += child::kDirectDropGroups;
  birth_.plan.option = options_.c_str();
  if (const child::Failure mapped = WriteMaps(host.root, ids); mapped.failed()) {
    return std::unexpected(ErrorOf(mapped));
  }
  released_ = true;
  child::ReleaseInit(&birth_);
  return {};
}

child::Failure DirectInit::WriteMaps(bool root, Ids ids) const {
  const auto proc = sys::Open("/proc", O_PATH | O_DIRECTORY);
  if (!proc) return {child::Step::kOpenProc, proc.error().sys_errno};
  const auto pid = static_cast<std::uint32_t>(birth_.pid);
  long mapped = root ? 0 : child::DenySetgroups(proc->get(), pid);
  if (mapped >= 0) mapped = child::WriteIdMap(proc->get(), pid, "uid_map", ids.uid);
  if (mapped >= 0) mapped = child::WriteIdMap(proc->get(), pid, "gid_map", ids.gid);
  return child::FailureIf(mapped, child::Step::kSandboxUidMap);
}

DirectInit::~DirectInit() {
  if (!cloned_) return;
  // While it is on its way it uses our memory.
  if (released_ && child::AwaitInit(&birth_).failed()) return;
  child::AbandonInit(&birth_);
}

Result<void> DirectInit::Show(std::span<const ViewItem> items) {
  while (!items.empty()) {
    const std::size_t count = std::min(items.size(), kItemsPerPart);
    PALMSHED_TRY_VOID(SendPart(items.first(count)));
    items = items.subspan(count);
  }
  return {};
}

Result<void> DirectInit::SendPart(std::span<const ViewItem> items) {
  std::vector<ViewItem> shown;
  std::vector<UniqueFd> trees;
  for (ViewItem item : items) {
    if (root_ && item.op == child::ViewOp::kBind) {
      PALMSHED_TRY(const bool there, OpenTree(item, trees));
      if (!there) continue;
    }
    shown.push_back(std::move(item));
  }
  const child::ViewPart part{.op = child::InitOp::kView,
                             .entries = static_cast<std::uint32_t>(shown.size())};
  std::vector<std::byte> message;
  Append(message, BytesOf(part));
  Append(message, EncodeView(shown));
  std::vector<BorrowedFd> fds;
  fds.reserve(trees.size());
  for (const UniqueFd& tree : trees) fds.push_back(tree.get());
  return sys::SendMessage(socket_.get(), message, fds);
}

Result<DirectInit::Launched> DirectInit::Finish(std::span<const std::byte> config,
                                                std::span<const BorrowedFd> locks) {
  if (const child::Failure born = child::AwaitInit(&birth_); born.failed()) {
    cloned_ = false;
    return std::unexpected(ErrorOf(born));
  }
  ResetFromOutside(birth_.pid);
  init_socket_.reset();  // So that its end is seen.
  PALMSHED_TRY_VOID(sys::SendMessage(socket_.get(), config, locks));
  cloned_ = false;
  return Launched{.socket = std::move(socket_), .pidfd = UniqueFd(birth_.pidfd)};
}

}  // namespace palmshed::backends::native
