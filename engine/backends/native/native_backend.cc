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
#include <map>
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
#include "backends/native/remedies.h"
#include "backends/native/rungs.h"
#include "backends/native/sandbox.h"
#include "backends/native/state.h"
#include "backends/native/uid_lease.h"
#include "base/faults.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "child/image.h"
#include "child/step_names.h"
#include "child/wire.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

constexpr char kName[] = "native";
/// Landlock's first version with scopes for abstract sockets.
constexpr int kAbiWithScopes = 6;

class NativeBackend final : public Backend {
 public:
  explicit NativeBackend(const BackendContext& context) : context_(context) {}

  std::string_view name() const override { return kName; }
  Result<plan::Offer> MakeOffer(const SandboxOptions& options) override;
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
  std::map<Kind, Rung> rungs_;
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
  const std::lock_guard lock(mu_);
  Rung& rung = rungs_[kind];
  // A refusal is not remembered: somebody may have followed the remedy meanwhile.
  if (!rung.launcher || rung.launcher->gone()) rung = StartRung(*context_.loop, *host, kind);
  return rung;
}

Result<plan::Offer> NativeBackend::MakeOffer(const SandboxOptions& options) {
  PALMSHED_TRY(const Host* host, GetHost());
  plan::Offer offer{.backend = kName,
                    .host_loopback_guarded = host->landlock_abi >= kAbiWithScopes,
                    .groups_dropped = host->root || !host->extra_groups,
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
  offer.private_view = true;
  offer.network_disabled = true;
  return offer;
}

Result<std::unique_ptr<BackendSandbox>> NativeBackend::Create(const std::string& id,
                                                              const plan::SandboxPlan& plan,
                                                              std::function<void()> lost) {
  PALMSHED_TRY(const Host* host, GetHost());
  PALMSHED_TRY(const Rung rung, RungFor(KindFor(plan.private_view, plan.network, plan.proc)));
  if (rung.refused) return std::unexpected(*rung.refused);

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

  const auto config =
      EncodeInit(plan, *rung.view, filters_.For(FilterFor(plan)), host->landlock_abi);
  auto made = Launch(rung, request, config, locks);
  if (!made) {
    (void)home.Remove();
    return std::unexpected(std::move(made.error()));
  }
  return NativeSandbox::Create({.loop = context_.loop,
                                .launcher = rung.launcher,
                                .socket = std::move(made->socket),
                                .pidfd = std::move(made->pidfd),
                                .home = std::move(home),
                                .owner = owner,
                                .lost = std::move(lost)});
}

Result<Capabilities> NativeBackend::Describe() {
  PALMSHED_TRY(const Host* host, GetHost());
  return Capabilities{
      .filesystem_view = "private",
      .crash_kill = "kernel",
      .host_loopback = "reachable",
      .supplementary_groups = host->root || !host->extra_groups ? "dropped" : "kept"};
}

std::unique_ptr<Backend> MakeNativeBackend(const BackendContext& context) {
  return std::make_unique<NativeBackend>(context);
}

}  // namespace palmshed::backends::native
