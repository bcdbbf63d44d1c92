// Theory of operation. Three kinds of process stand behind a sandbox: this engine, a launcher for
// each kind of sandbox (file view and network), and an init for each sandbox; child/wire.h has the
// messages. Making a sandbox: a directory with its lock, a host uid (as root), init's first message
// put into its socket, then one request to the launcher. The locks travel to init, so they are free
// exactly when it is dead. The first sandbox of its kind is made without a launcher (direct.h).
#include "backends/native/native_backend.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/native/collector.h"
#include "backends/native/direct.h"
#include "backends/native/disk_enforcer.h"
#include "backends/native/disk_meter.h"
#include "backends/native/host.h"
#include "backends/native/host_limits.h"
#include "backends/native/host_mounts.h"
#include "backends/native/init_message.h"
#include "backends/native/launcher.h"
#include "backends/native/launchers.h"
#include "backends/native/limited_sandbox.h"
#include "backends/native/offers.h"
#include "backends/native/place.h"
#include "backends/native/remedies.h"
#include "backends/native/rungs.h"
#include "backends/native/sandbox.h"
#include "backends/native/state.h"
#include "backends/native/state_paths.h"
#include "backends/native/storage.h"
#include "backends/native/surroundings.h"
#include "backends/native/view.h"
#include "base/faults.h"
#include "base/laps.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/schedule.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "child/image.h"
#include "child/step_names.h"
#include "child/wire.h"
#include "kernel/landlock.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/options.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "workspace/disk_usage.h"

namespace palmshed::backends::native {
namespace {

constexpr std::chrono::milliseconds kCollectDelay{50};
/// So that one large tree does not keep others from being measured.
constexpr std::size_t kDiskThreads = 4;

struct Launched {
  UniqueFd socket;
  UniqueFd pidfd;
};

class NativeBackend final : public Backend {
 public:
  explicit NativeBackend(const BackendContext& context)
      : context_(context), launchers_(context.loop, context.worker) {}
  ~NativeBackend() override;
  NativeBackend(const NativeBackend&) = delete;
  NativeBackend& operator=(const NativeBackend&) = delete;

  std::string_view name() const override { return kName; }
  Result<PlannedSandbox> Create(const std::string& id, const SandboxOptions& options,
                                const Planner& planner, std::function<void()> lost) override;
  Result<Description> Describe() override;
  std::optional<Surroundings> Survey() override;
  std::span<const std::byte> ProbeProgram() const override { return child::HelperImage(); }

 private:
  /// A copy: it stays usable when another thread replaces a launcher that has died.
  Result<Rung> RungFor(Kind kind);
  Result<const Host*> GetHost();
  Result<PlannedSandbox> CreateDirectly(const std::string& id, const SandboxOptions& options,
                                        const Planner& planner, const std::function<void()>& lost,
                                        Laps& laps);
  Result<DirectInit::Launched> FinishDirectly(const plan::SandboxPlan& plan, const View& view,
                                              const Place& place, DirectInit& init);
  Result<PlannedSandbox> CreateByLauncher(const std::string& id, const SandboxOptions& options,
                                          const Planner& planner, std::function<void()> lost,
                                          Laps& laps);
  Result<Launched> LaunchPlanned(const Host& host, const Rung& rung, const plan::SandboxPlan& plan,
                                 const Place& place);
  std::optional<SandboxDisk> DiskOf(const plan::SandboxPlan& plan, const Place& place,
                                    BorrowedFd init);
  Result<Rung> MakeOffer(const std::string& id, const SandboxOptions& options, plan::Offer& offer);
  void OfferLimits(plan::Offer& offer, LimitedKind kind, bool private_view) const;
  NativeSandbox::Parts PartsOf(const plan::SandboxPlan& plan) const;
  void Announce() const;
  void CollectSoon();
  void Collect();
  void NoteMade(const std::string& id);

  const BackendContext context_;
  std::mutex mu_;
  std::optional<Host> host_;                    ///< Set once, then constant.
  std::unique_ptr<Loop::Timer> collect_timer_;  ///< The loop's thread only.
  std::atomic<bool> collected_ = false;
  std::mutex made_mu_;
  std::optional<std::set<std::string>> made_{std::in_place};  ///< Ids, until it has collected.
  Schedule schedule_{kDiskThreads};
  Launchers launchers_;
  Filters filters_;
  /// Shared with the sandboxes.
  const std::shared_ptr<HostLimits> limits_ = std::make_shared<HostLimits>();
};

/// Its name, e.g. "EBUSY".
std::string ErrnoOf(const Error& error) {
  const char* const name = error.sys_errno != 0 ? ::strerrorname_np(error.sys_errno) : nullptr;
  return name != nullptr ? name : std::string(ToString(error.code));
}

Kind KindOf(const SandboxOptions& options) {
  return {.private_view = options.os_filesystem_isolation.value_or(true),
          .host_network = options.network == Network::kAllow};
}

/// Where the filtered rung fails, the remedy is to allow the better one.
Error Explained(Error error, const Rung& rung) {
  error = ExplainHostMount(std::move(error));
  if (error.code != ErrorCode::kUnsupported) return error;
  if (rung.better_refused) {
    error.remedy = ExplainRefusal(*rung.better_refused, ReadKernelFileFromHost).remedy;
  } else if (error.remedy.empty()) {
    plan::Offer::Missing missing = ExplainRefusal(error, ReadKernelFileFromHost);
    error.message = std::move(missing.reason);
    error.remedy = std::move(missing.remedy);
  }
  return error;
}

/// Init finds its configuration waiting when it starts.
Result<Launched> Launch(const Rung& rung, LaunchRequest request,
                        const std::vector<std::byte>& config, const Place& place) {
  PALMSHED_TRY(auto sockets, sys::SocketPair());
  PALMSHED_TRY_VOID(sys::SendMessage(sockets.first.get(), config, place.Locks()));
  request.socket = sockets.second.get();
  PALMSHED_TRY(auto pidfd, rung.launcher->Launch(request));
  return Launched{.socket = std::move(sockets.first), .pidfd = std::move(pidfd)};
}

Result<std::vector<HostMount>> HoldPlanned(const Host& host, const std::vector<Mount>& mounts) {
  if (mounts.empty()) return std::vector<HostMount>();
  PALMSHED_TRY(const auto private_paths, PrivatePaths(host.environment, host.directories));
  return HoldMounts(mounts, private_paths);
}

ViewItem OwnDirectory(const char* path, const std::string& source) {
  return {.op = child::ViewOp::kBind, .flags = child::kViewWritable, .a = path, .b = source};
}

/// Sends the view of a sandbox that has no launcher, but for its own directories.
Result<View> ShowDirectly(const Host& host, Kind kind, DirectInit& init) {
  Result<void> shown;
  View view = NamespaceView(host, kind, [&](std::span<const ViewItem> items) {
    if (shown) shown = init.Show(items);
  });
  if (!shown) return std::unexpected(std::move(shown.error()));
  if (view.failed) return std::unexpected(std::move(*view.failed));
  return view;
}

/// Why the ports of such a sandbox are none of its own, or cannot be looked at; empty: they can.
std::string NoTcpTables(const plan::SandboxPlan& plan) {
  if (plan.network != Network::kDisabled || plan.filtered_view) {
    return "this sandbox has no network of its own, and its ports are those of the host";
  }
  return plan.proc ? "" : "this sandbox has no /proc";
}

}  // namespace

Result<const Host*> NativeBackend::GetHost() {
  const std::lock_guard lock(mu_);
  if (!host_) {
    PALMSHED_TRY(auto host, DiscoverHost(*context_.options));
    host_.emplace(std::move(host));
    Announce();
    context_.loop->Post([this] { CollectSoon(); });
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

/// What engines left behind that were killed goes when there is nothing better to do; an engine
/// that does not live that long looks at last.
void NativeBackend::CollectSoon() {
  collect_timer_ =
      context_.loop->After(kCollectDelay, [this] { context_.worker->Post([this] { Collect(); }); });
}

NativeBackend::~NativeBackend() {
  limits_->worker().Finish();
  context_.loop->Run([this] { collect_timer_.reset(); });
  if (host_) Collect();
}

void NativeBackend::Collect() {
  if (collected_.exchange(true) || Faulty("no-collector")) return;
  const auto collected = CollectDead(host_->directories.workspaces.fd.get());
  const auto reaped = [this](const std::string& id, const Error* why) {
    Event event{.name = "backend.reap", .time = std::chrono::system_clock::now(), .sandbox = id};
    // Not its message, which may name a file of a program's.
    if (why != nullptr) event.fields = {{"error", ErrnoOf(*why)}, {"op", why->op}};
    context_.emit(event);
  };
  // The lock of a sandbox goes with its init, and for a moment Destroy's own are like a dead
  // engine's.
  const std::set<std::string> own = [this] {
    const std::lock_guard lock(made_mu_);
    return *std::exchange(made_, std::nullopt);
  }();
  if (!collected) return reaped({}, &collected.error());
  for (const std::string& id : collected->removed) {
    if (!own.contains(id)) reaped(id, nullptr);
  }
  for (const auto& [id, why] : collected->failures) {
    if (!own.contains(id)) reaped(id, &why);
  }
}

void NativeBackend::NoteMade(const std::string& id) {
  const std::lock_guard lock(made_mu_);
  if (made_) made_->insert(id);
}

Result<Rung> NativeBackend::RungFor(Kind kind) {
  PALMSHED_TRY(const Host* host, GetHost());
  return launchers_.For(*host, kind);
}

Result<PlannedSandbox> NativeBackend::Create(const std::string& id, const SandboxOptions& options,
                                             const Planner& planner, std::function<void()> lost) {
  Laps laps;
  NoteMade(id);
  // Storage of a fixed size, and what is the host's, is handed to init by a launcher.
  const bool plain = options.storage == Storage::kDisk && options.mounts.empty();
  if (plain && launchers_.TakeFirst(KindOf(options))) {
    bool refused = false;
    const Planner noting = [&](const plan::Offer& offer) {
      auto plan = planner(offer);
      refused = !plan;
      return plan;
    };
    auto direct = CreateDirectly(id, options, noting, lost, laps);
    // What is not to be had from the best offer is not to be had from any.
    if (direct || refused) return direct;
    laps.End("in_vain");
  }
  return CreateByLauncher(id, options, planner, std::move(lost), laps);
}

/// Init starts, and makes its namespaces and its view, while the rest is found out.
Result<PlannedSandbox> NativeBackend::CreateDirectly(const std::string& id,
                                                     const SandboxOptions& options,
                                                     const Planner& planner,
                                                     const std::function<void()>& lost,
                                                     Laps& laps) {
  const Kind kind = KindOf(options);
  PALMSHED_TRY(const auto init, DirectInit::Begin(*context_.loop, kind));
  laps.End("clone");
  PALMSHED_TRY(const Host* host, GetHost());
  laps.End("host");
  PALMSHED_TRY(Place place, TakeUid(*host));
  const DirectInit::Ids ids{.uid = place.owner.value_or(::geteuid()),
                            .gid = place.owner.value_or(::getegid())};
  PALMSHED_TRY_VOID(init->Identify(*host, ids));
  laps.End("identity");
  PALMSHED_TRY(const View view, ShowDirectly(*host, kind, *init));
  laps.End("show");
  plan::Offer offer = FullOffer(*host);
  OfferLimits(offer, {}, kind.private_view);
  PALMSHED_TRY(plan::SandboxPlan plan, planner(offer));
  laps.End("plan");
  PALMSHED_TRY_VOID(MakeHome(*host, id, place));
  laps.End("directory");
  auto made = FinishDirectly(plan, view, place, *init);
  if (!made) {
    (void)place.home->Remove();
    return std::unexpected(std::move(made.error()));
  }
  NativeSandbox::Parts parts = PartsOf(plan);
  parts.disk = DiskOf(plan, place, made->pidfd.get());
  parts.socket = std::move(made->socket);
  parts.pidfd = std::move(made->pidfd);
  parts.home = *std::move(place.home);
  parts.owner = place.owner;
  parts.lost = lost;
  PALMSHED_TRY(auto sandbox, NativeSandbox::Create(std::move(parts), laps));
  return PlannedSandbox{
      .plan = std::move(plan), .sandbox = std::move(sandbox), .laps = std::move(laps)};
}

Result<DirectInit::Launched> NativeBackend::FinishDirectly(const plan::SandboxPlan& plan,
                                                           const View& view, const Place& place,
                                                           DirectInit& init) {
  const std::array own{OwnDirectory("/tmp", place.home->tmp_path()),
                       OwnDirectory("/workspace", place.home->workspace_path())};
  PALMSHED_TRY_VOID(init.Show(own));
  const auto config =
      EncodeInit(plan, view, filters_.For(FilterFor(plan)), host_->landlock_abi, true);
  return init.Finish(config, place.Locks());
}

void NativeBackend::OfferLimits(plan::Offer& offer, LimitedKind kind, bool private_view) const {
  const StorageKind storage{.root = host_->root, .private_view = private_view};
  const BorrowedFd root = host_->directories.workspaces.fd.get();
  offer.find_limits = [limits = limits_, kind, storage, root](plan::Offer& found) {
    limits->Offer(found, kind, root);
    OfferStorage(found, storage);
  };
}

/// What does not depend on how it was made.
NativeSandbox::Parts NativeBackend::PartsOf(const plan::SandboxPlan& plan) const {
  const LimitedKind kind{.namespaces = !plan.filtered_view,
                         .proc = plan.proc,
                         .scopes = host_->landlock_abi >= kernel::kLandlockAbiWithScopes};
  return {
      .loop = context_.loop,
      .enforcers = [limits = limits_, kind](
                       const LimitedSandbox& sandbox) { return limits->SourcesFor(sandbox, kind); },
      .worker = &limits_->worker(),
      .bears = kind.bears(),
      .no_tcp_tables = NoTcpTables(plan),
      .ceilings = plan.ceilings};
}

/// What can be had for such options, and the launcher that gives it.
Result<Rung> NativeBackend::MakeOffer(const std::string& id, const SandboxOptions& options,
                                      plan::Offer& offer) {
  PALMSHED_TRY(const Host* host, GetHost());
  offer = BasicOffer(*host);
  PALMSHED_TRY(Rung rung, RungFor(KindOf(options)));
  if (rung.refused && rung.refused->code != ErrorCode::kUnsupported) {
    return std::unexpected(std::move(*rung.refused));
  }
  OfferRuntimes(*host, offer);
  offer.fresh_proc = !rung.refused;
  if (rung.refused && rung.refused->op == child::StepName(child::Step::kViewProc)) {
    offer.proc_missing = ExplainRefusal(*rung.refused, ReadKernelFileFromHost);
    Kind kind = KindOf(options);
    kind.proc = false;
    PALMSHED_TRY(rung, RungFor(kind));
  }
  if (rung.refused) {
    OfferNothing(*rung.refused, offer);
    return rung;
  }
  offer.private_view = !rung.filtered;
  offer.terminals = !rung.filtered;
  offer.groups_dropped = rung.groups_dropped;
  offer.network_disabled = true;
  if (rung.filtered) {
    OfferFiltered(host->directories.workspaces, id, *rung.better_refused, offer);
  }
  OfferLimits(offer, {.namespaces = !rung.filtered, .proc = offer.fresh_proc},
              KindOf(options).private_view);
  return rung;
}

std::optional<SandboxDisk> NativeBackend::DiskOf(const plan::SandboxPlan& plan, const Place& place,
                                                 BorrowedFd init) {
  if (plan.ceilings.disk == Bytes{}) return std::nullopt;
  return SandboxDisk{.storage = plan.storage,
                     .quota = plan.ceilings.disk,
                     .place = {.workspace = place.home->workspace_path(),
                               .tmp = place.home->tmp_path(),
                               .owner = place.owner.value_or(::geteuid()),
                               .init = sys::PidOf(init).value_or(-1)},
                     .schedule = &schedule_};
}

Result<Launched> NativeBackend::LaunchPlanned(const Host& host, const Rung& rung,
                                              const plan::SandboxPlan& plan, const Place& place) {
  PALMSHED_TRY(const auto mounts, HoldPlanned(host, plan.mounts));
  PALMSHED_TRY(const auto storage, MakeStorage(host, plan, *place.home, place.owner));
  const LaunchRequest request{.workspace = place.home->workspace_path(),
                              .tmp = place.home->tmp_path(),
                              .uid = place.owner.value_or(0),
                              .workspace_tree = storage ? storage->workspace.get() : -1,
                              .tmp_tree = storage ? storage->tmp.get() : -1,
                              .mounts = mounts};
  std::shared_ptr<const View> view = rung.filtered
                                         ? std::make_shared<const View>(FilteredView(
                                               host, plan.network, request.workspace, request.tmp))
                                         : rung.view;
  if (view->failed) return std::unexpected(*view->failed);
  if (!mounts.empty()) view = std::make_shared<const View>(WithHostMounts(*view, mounts));
  const workspace::DiskAmount of_init =
      InitMakesStorage(host, plan) ? AllowedBy(plan.ceilings.disk) : workspace::DiskAmount{};
  const auto config =
      EncodeInit(plan, *view, filters_.For(FilterFor(plan)), host.landlock_abi, false, of_init);
  return Launch(rung, request, config, place);
}

Result<PlannedSandbox> NativeBackend::CreateByLauncher(const std::string& id,
                                                       const SandboxOptions& options,
                                                       const Planner& planner,
                                                       std::function<void()> lost, Laps& laps) {
  PALMSHED_TRY(const Host* host, GetHost());
  laps.End("host");
  plan::Offer offer;
  PALMSHED_TRY(const Rung rung, MakeOffer(id, options, offer));
  laps.End("launcher");
  PALMSHED_TRY(plan::SandboxPlan plan, planner(offer));
  if (rung.refused) return std::unexpected(*rung.refused);
  laps.End("plan");

  PALMSHED_TRY(Place place, TakeUid(*host));
  PALMSHED_TRY_VOID(MakeHome(*host, id, place));
  laps.End("directory");
  auto made = LaunchPlanned(*host, rung, plan, place);
  if (!made) {
    (void)place.home->Remove();
    return std::unexpected(Explained(std::move(made.error()), rung));
  }
  NativeSandbox::Parts parts = PartsOf(plan);
  parts.launcher = rung.launcher;
  parts.disk = DiskOf(plan, place, made->pidfd.get());
  parts.socket = std::move(made->socket);
  parts.pidfd = std::move(made->pidfd);
  parts.home = *std::move(place.home);
  parts.supervised = rung.filtered;
  parts.owner = place.owner;
  parts.lost = std::move(lost);
  auto sandbox = NativeSandbox::Create(std::move(parts), laps);
  if (!sandbox) return std::unexpected(Explained(std::move(sandbox.error()), rung));
  return PlannedSandbox{
      .plan = std::move(plan), .sandbox = *std::move(sandbox), .laps = std::move(laps)};
}

Result<Description> NativeBackend::Describe() {
  plan::Offer offer;
  PALMSHED_TRY(const Rung rung, MakeOffer({}, {}, offer));
  Capabilities capabilities{.filesystem_view = rung.filtered ? "filtered" : "private",
                            .crash_kill = rung.filtered ? "supervised" : "kernel",
                            .host_loopback = "reachable",
                            .supplementary_groups = rung.groups_dropped ? "dropped" : "kept"};
  if (rung.filtered) capabilities.controls.push_back(NamespacesRefused(*rung.better_refused));
  return Description{.capabilities = std::move(capabilities), .offer = std::move(offer)};
}

/// Of the loop's thread: those that make sandboxes have inherited what it has.
std::optional<Surroundings> NativeBackend::Survey() {
  std::optional<Surroundings> found;
  context_.loop->Run([&] { found = SurveyHost(ReadHostEnvironment(), *context_.options); });
  return found;
}

std::unique_ptr<Backend> MakeNativeBackend(const BackendContext& context) {
  return std::make_unique<NativeBackend>(context);
}

}  // namespace palmshed::backends::native
