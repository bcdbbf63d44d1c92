// Theory of operation. Three kinds of process stand behind a sandbox: this engine, a launcher for
// each kind of sandbox (file view and network), and an init for each sandbox; child/wire.h has the
// messages. Making a sandbox: a directory with its lock, a host uid (as root), init's first message
// put into its socket, then one request to the launcher. The locks travel to init, so they are free
// exactly when it is dead.
#include "backends/native/native_backend.h"

#include <unistd.h>

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/native/collector.h"
#include "backends/native/host.h"
#include "backends/native/init_message.h"
#include "backends/native/launcher.h"
#include "backends/native/launchers.h"
#include "backends/native/remedies.h"
#include "backends/native/rungs.h"
#include "backends/native/sandbox.h"
#include "backends/native/state.h"
#include "backends/native/state_paths.h"
#include "backends/native/uid_lease.h"
#include "base/faults.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "child/image.h"
#include "child/step_names.h"
#include "child/wire.h"
#include "kernel/landlock.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

constexpr char kName[] = "native";

class NativeBackend final : public Backend {
 public:
  explicit NativeBackend(const BackendContext& context)
      : context_(context), launchers_(context.loop, context.worker) {}

  std::string_view name() const override { return kName; }
  Result<plan::Offer> MakeOffer(const std::string& id, const SandboxOptions& options) override;
  Result<std::unique_ptr<BackendSandbox>> Create(const std::string& id,
                                                 const plan::SandboxPlan& plan,
                                                 std::function<void()> lost) override;
  Result<Capabilities> Describe() override;
  std::span<const std::byte> ProbeProgram() const override { return child::HelperImage(); }

 private:
  /// A copy: it stays usable when another thread replaces a launcher that has died.
  Result<Rung> RungFor(Kind kind);
  Result<const Host*> GetHost();
  void Announce() const;
  void Collect() const;

  const BackendContext context_;
  std::mutex mu_;
  std::optional<Host> host_;  ///< Set once, then constant.
  Launchers launchers_;
  Filters filters_;
};

Kind KindFor(bool private_view, Network network, bool proc) {
  return {.private_view = private_view, .host_network = network == Network::kAllow, .proc = proc};
}

void OfferNothing(const Error& refused, plan::Offer& offer) {
  const auto missing = ExplainRefusal(refused, ReadKernelFileFromHost);
  offer.private_view_missing = missing;
  offer.network_missing = missing;
  offer.proc_missing = missing;
}

void OfferFiltered(const HostDirectory& root, const std::string& id, plan::Offer& offer) {
  offer.filtered_view = true;
  offer.workspace = WorkspacePath(root, id);
  offer.tmp = TmpPath(root, id);
}

/// The kind that the offer for this plan was made for.
Kind KindOf(const plan::SandboxPlan& plan) {
  return KindFor(plan.private_view || plan.filtered_view, plan.network,
                 plan.proc || plan.filtered_view);
}

/// Where the filtered rung fails, the remedy is to allow the better one.
Error Explained(Error error, const Rung& rung) {
  if (rung.better_refused && error.code == ErrorCode::kUnsupported) {
    error.remedy = ExplainRefusal(*rung.better_refused, ReadKernelFileFromHost).remedy;
  }
  return error;
}

Error Changed() {
  return {.code = ErrorCode::kBackendLost,
          .message = "what this host allows has changed while the sandbox was made",
          .remedy = "try again"};
}

/// Init's half of the first message: the descriptors that it holds for as long as it lives.
struct Locks {
  UniqueFd home;
  UniqueFd uid;
};

struct Launched {
  UniqueFd socket;
  UniqueFd pidfd;
};

/// Init finds its configuration waiting when it starts.
Result<Launched> Launch(const Rung& rung, LaunchRequest request,
                        const std::vector<std::byte>& config, const Locks& locks) {
  PALMSHED_TRY(auto sockets, sys::SocketPair());
  std::vector<BorrowedFd> fds{locks.home.get()};
  if (locks.uid.valid()) fds.push_back(locks.uid.get());
  PALMSHED_TRY_VOID(sys::SendMessage(sockets.first.get(), config, fds));
  request.socket = sockets.second.get();
  PALMSHED_TRY(auto pidfd, rung.launcher->Launch(request));
  return Launched{.socket = std::move(sockets.first), .pidfd = std::move(pidfd)};
}

}  // namespace

Result<const Host*> NativeBackend::GetHost() {
  const std::lock_guard lock(mu_);
  if (!host_) {
    PALMSHED_TRY(auto host, DiscoverHost(*context_.options));
    host_.emplace(std::move(host));
    Announce();
    if (!Faulty("no-collector")) context_.worker->Post([this] { Collect(); });
  }
  return &*host_;
}

void NativeBackend::Announce() const {
  context_.emit({.name = "backend.init",
                 .time = std::chrono::system_clock::now(),
                 .fields = {{"backend", kName},
                            {"landlockAbi", std::to_string(host_->landlock_abi)},
                            {"user", host_->root ? "root" : "ordinary"}}});
}

/// What engines left behind that were killed. On the worker's thread; nobody waits for it.
void NativeBackend::Collect() const {
  const auto collected = CollectDead(host_->directories.workspaces.fd.get());
  if (!collected) return;  // The directory is unreadable; creating a sandbox will say so.
  for (const std::string& id : collected->removed) {
    context_.emit(
        {.name = "backend.reap", .time = std::chrono::system_clock::now(), .sandbox = id});
  }
}

Result<Rung> NativeBackend::RungFor(Kind kind) {
  PALMSHED_TRY(const Host* host, GetHost());
  return launchers_.For(*host, kind);
}

Result<plan::Offer> NativeBackend::MakeOffer(const std::string& id, const SandboxOptions& options) {
  PALMSHED_TRY(const Host* host, GetHost());
  plan::Offer offer{.backend = kName,
                    .host_loopback_guarded = host->landlock_abi >= kernel::kLandlockAbiWithScopes,
                    // Workloads are not bound to the engine's processors.
                    .usable_cpus = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN))};
  const bool private_view = options.os_filesystem_isolation.value_or(true);
  PALMSHED_TRY(Rung rung, RungFor(KindFor(private_view, options.network, true)));
  offer.search_path = host->runtimes.get().search_path;
  offer.runtime_env = host->runtimes.get().env;
  offer.fresh_proc = !rung.refused;
  if (rung.refused && rung.refused->op == child::StepName(child::Step::kViewProc)) {
    offer.proc_missing = ExplainRefusal(*rung.refused, ReadKernelFileFromHost);
    PALMSHED_TRY(rung, RungFor(KindFor(private_view, options.network, false)));
  }
  if (rung.refused) {
    OfferNothing(*rung.refused, offer);
    return offer;
  }
  offer.private_view = !rung.filtered;
  offer.groups_dropped = rung.groups_dropped;
  offer.network_disabled = true;
  if (rung.filtered) OfferFiltered(host->directories.workspaces, id, offer);
  return offer;
}

Result<std::unique_ptr<BackendSandbox>> NativeBackend::Create(const std::string& id,
                                                              const plan::SandboxPlan& plan,
                                                              std::function<void()> lost) {
  PALMSHED_TRY(const Host* host, GetHost());
  PALMSHED_TRY(const Rung rung, RungFor(KindOf(plan)));
  if (rung.refused) return std::unexpected(*rung.refused);
  if (rung.filtered != plan.filtered_view) return std::unexpected(Changed());

  Locks locks;
  workspace::Owner owner;
  if (host->root) {
    PALMSHED_TRY(auto lease, UidLease::Take(host->directories.state.fd.get(), host->uids));
    owner = Faulty("shared-uid") ? host->uids.start : lease.uid();
    locks.uid = lease.TakeLock();
  }
  PALMSHED_TRY(auto home, SandboxHome::Create(host->directories.workspaces, id, owner));
  const LaunchRequest request{
      .workspace = home.workspace_path(), .tmp = home.tmp_path(), .uid = owner.value_or(0)};
  locks.home = home.TakeLock();

  const std::shared_ptr<const View> view =
      rung.filtered ? std::make_shared<const View>(
                          FilteredView(*host, plan.network, request.workspace, request.tmp))
                    : rung.view;
  const auto config = EncodeInit(plan, *view, filters_.For(FilterFor(plan)), host->landlock_abi);
  auto made = Launch(rung, request, config, locks);
  if (!made) {
    (void)home.Remove();
    return std::unexpected(Explained(std::move(made.error()), rung));
  }
  auto sandbox = NativeSandbox::Create({.loop = context_.loop,
                                        .launcher = rung.launcher,
                                        .socket = std::move(made->socket),
                                        .pidfd = std::move(made->pidfd),
                                        .home = std::move(home),
                                        .supervised = rung.filtered,
                                        .owner = owner,
                                        .lost = std::move(lost)});
  if (!sandbox) return std::unexpected(Explained(std::move(sandbox.error()), rung));
  return sandbox;
}

/// What the weaker rung lacks, and how to get it.
Control NamespacesRefused(const Error& refused) {
  const auto missing = ExplainRefusal(refused, ReadKernelFileFromHost);
  return {.name = "userNamespaces",
          .works = false,
          .mechanism = "user namespace",
          .detail = missing.reason,
          .lost = "a file view, a process list and a loopback of the sandbox's own",
          .remedy = missing.remedy};
}

Result<Capabilities> NativeBackend::Describe() {
  PALMSHED_TRY(const Rung rung, RungFor(KindFor(true, Network::kDisabled, true)));
  Capabilities capabilities{.filesystem_view = rung.filtered ? "filtered" : "private",
                            .crash_kill = rung.filtered ? "supervised" : "kernel",
                            .host_loopback = "reachable",
                            .supplementary_groups = rung.groups_dropped ? "dropped" : "kept"};
  if (rung.filtered) capabilities.controls.push_back(NamespacesRefused(*rung.better_refused));
  return capabilities;
}

std::unique_ptr<Backend> MakeNativeBackend(const BackendContext& context) {
  return std::make_unique<NativeBackend>(context);
}

}  // namespace palmshed::backends::native
