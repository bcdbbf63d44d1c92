#include "backends/native/rungs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "backends/native/host.h"
#include "backends/native/launcher.h"
#include "backends/native/view.h"
#include "base/faults.h"
#include "base/loop.h"
#include "child/step_names.h"
#include "child/wire.h"
#include "kernel/landlock.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

enum class Level : std::uint8_t { kUserNamespace, kOtherNamespaces, kFiltered };

/// Without a user namespace the sandbox sees its host uid, whichever it gets.
View MakeView(const Host& host, Kind kind, Level level) {
  if (level == Level::kFiltered) return {};
  const ViewRequest request{
      .network = kind.host_network ? Network::kAllow : Network::kDisabled,
      .uid = level == Level::kUserNamespace ? child::kInsideUid : host.uids.start,
      .landlock_abi = host.landlock_abi,
      .runtimes = host.runtimes};
  View view = kind.private_view && !Faulty("host-view") ? BuildPrivateView(request)
                                                        : BuildHostView(request);
  if (!kind.proc) {
    std::erase_if(view.items, [](const ViewItem& item) { return item.op == child::ViewOp::kProc; });
  }
  if (Faulty("writable-runtime")) {
    for (ViewItem& item : view.items) item.flags |= child::kViewWritable;
  }
  return view;
}

LauncherSetup MakeSetup(const Host& host, Kind kind, Level level, const View& view) {
  LauncherSetup setup{.view_entries = static_cast<std::uint32_t>(view.items.size()),
                      .view = EncodeView(view.items)};
  if (host.root) {
    const std::string range = std::to_string(host.uids.start) + " " +
                              std::to_string(host.uids.start) + " " +
                              std::to_string(host.uids.count) + "\n";
    setup.uid_map = setup.gid_map = "0 0 1\n" + range;
    setup.launcher_flags |= child::kLauncherRoot;
  } else {
    setup.uid_map = "0 " + std::to_string(::geteuid()) + " 1\n";
    setup.gid_map = "0 " + std::to_string(::getegid()) + " 1\n";
    setup.stage_flags |= child::kStageDenySetgroups;
  }
  if (level == Level::kFiltered) setup.stage_flags |= child::kStageFiltered;
  if (level == Level::kOtherNamespaces) {
    setup.stage_flags |= child::kStageNoUserNamespace;
    setup.launcher_flags |= child::kLauncherNoUserNamespace;
  }
  const bool share = kind.host_network || Faulty("host-network");
  setup.launcher_flags |= share ? child::kLauncherHostNetwork : child::kLauncherSpareNetwork;
  return setup;
}

Rung TryRung(Loop& loop, const Host& host, Kind kind, Level level) {
  Rung rung{.view = MakeView(host, kind, level), .filtered = level == Level::kFiltered};
  auto launcher = Launcher::Start(loop, host.helper.get(), MakeSetup(host, kind, level, rung.view));
  if (launcher) {
    rung.launcher = *std::move(launcher);
  } else {
    rung.refused = std::move(launcher.error());
  }
  return rung;
}

/// AppArmor lets an ordinary user make the namespace and refuses every use of it.
bool IsNamespaceRefusal(const Error& error) {
  constexpr child::Step kSteps[] = {child::Step::kCloneLauncher, child::Step::kSetgroups,
                                    child::Step::kUidMap,        child::Step::kGidMap,
                                    child::Step::kPrivateMounts, child::Step::kUnshareMounts};
  return std::ranges::any_of(kSteps,
                             [&](child::Step step) { return error.op == child::StepName(step); });
}

/// Root can do without user namespaces: the others need CAP_SYS_ADMIN only (namespaces(7)). An
/// ordinary user gets what Landlock and seccomp can do, where scopes keep signals inside.
std::optional<Level> NextBest(const Host& host, Kind kind) {
  if (host.root) return Level::kOtherNamespaces;
  const bool scopes = host.landlock_abi >= kernel::kLandlockAbiWithScopes;
  if (kind.private_view && scopes) return Level::kFiltered;
  return std::nullopt;
}

}  // namespace

Rung StartRung(Loop& loop, const Host& host, Kind kind) {
  Rung rung = TryRung(loop, host, kind, Level::kUserNamespace);
  if (!rung.refused || !IsNamespaceRefusal(*rung.refused)) return rung;
  const std::optional<Level> level = NextBest(host, kind);
  if (!level) return rung;
  Rung next = TryRung(loop, host, kind, *level);
  if (next.refused) return rung;
  next.better_refused = std::move(rung.refused);
  return next;
}

View FilteredView(const Host& host, Network network, const std::string& workspace,
                  const std::string& tmp) {
  const ViewRequest request{
      .network = network, .landlock_abi = host.landlock_abi, .runtimes = host.runtimes};
  return Faulty("host-view") ? BuildHostView(request) : BuildFilteredView(request, workspace, tmp);
}

}  // namespace palmshed::backends::native
