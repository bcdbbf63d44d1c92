#include "backends/native/rungs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
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

/// How a launcher is tried to be had.
struct Attempt {
  Level level = Level::kUserNamespace;
  bool drop_groups = false;  ///< By way of newgidmap(1), for an ordinary user.
};

/// Without a user namespace the sandbox sees its host uid, whichever it gets: init puts it in.
View MakeView(const Host& host, Kind kind, Level level, const ViewProgress& progress = {}) {
  if (level == Level::kFiltered) return {};
  const ViewRequest request{
      .network = kind.host_network ? Network::kAllow : Network::kDisabled,
      .uid = level == Level::kUserNamespace ? child::kInsideUid : host.uids.start,
      .landlock_abi = host.landlock_abi,
      .proc = kind.proc,
      .runtimes = host.runtimes};
  if (!kind.private_view || Faulty("host-view")) return BuildHostView(request, progress);
  View view = BuildPrivateView(request, progress);
  view.any_uid = level != Level::kUserNamespace;
  return view;
}

void MapOrdinaryUser(const Host& host, bool drop_groups, LauncherSetup& setup) {
  setup.uid_map = "0 " + std::to_string(::geteuid()) + " 1\n";
  setup.gid_map = "0 " + std::to_string(::getegid()) + " 1\n";
  if (!drop_groups) {
    setup.stage_flags |= child::kStageDenySetgroups;
    return;
  }
  setup.gid_map += "1 " + std::to_string(*host.spare_gid) + " 1\n";
  setup.stage_flags |= child::kStageNewgidmap;
  setup.launcher_flags |= child::kLauncherDropGroups;
}

LauncherSetup MakeSetup(const Host& host, Kind kind, Attempt attempt) {
  LauncherSetup setup;
  if (host.root) {
    const std::string range = std::to_string(host.uids.start) + " " +
                              std::to_string(host.uids.start) + " " +
                              std::to_string(host.uids.count) + "\n";
    setup.uid_map = setup.gid_map = "0 0 1\n" + range;
    setup.launcher_flags |= child::kLauncherRoot;
  } else {
    MapOrdinaryUser(host, attempt.drop_groups, setup);
  }
  if (attempt.level == Level::kFiltered) setup.stage_flags |= child::kStageFiltered;
  if (attempt.level == Level::kOtherNamespaces) {
    setup.stage_flags |= child::kStageNoUserNamespace;
    setup.launcher_flags |= child::kLauncherNoUserNamespace;
  }
  const bool share = kind.host_network || Faulty("host-network");
  setup.launcher_flags |= share ? child::kLauncherHostNetwork : child::kLauncherSpareNetwork;
  return setup;
}

Rung TryRung(Loop& loop, const Host& host, Kind kind, Attempt attempt) {
  Rung rung{.filtered = attempt.level == Level::kFiltered,
            .groups_dropped = host.root || !host.extra_groups || attempt.drop_groups};
  LauncherSetup setup = MakeSetup(host, kind, attempt);
  setup.view = [&] {
    rung.view = std::make_shared<const View>(MakeView(host, kind, attempt.level));
    return EncodedView{.entries = static_cast<std::uint32_t>(rung.view->items.size()),
                       .records = EncodeView(rung.view->items)};
  };
  auto launcher = Launcher::Start(loop, host.helper.get(), setup);
  if (launcher && rung.view->failed) {
    rung.refused = rung.view->failed;
  } else if (launcher) {
    rung.launcher = *std::move(launcher);
  } else {
    rung.refused = std::move(launcher.error());
  }
  return rung;
}

/// Where newgidmap(1) does not do it, the groups are kept, and the capabilities say so.
Rung TryUserNamespace(Loop& loop, const Host& host, Kind kind) {
  if (host.spare_gid) {
    Rung rung = TryRung(loop, host, kind, {.drop_groups = true});
    const bool not_that_way =
        rung.refused && (rung.refused->op == child::StepName(child::Step::kGidMap) ||
                         rung.refused->op == child::StepName(child::Step::kSetgroups));
    if (!not_that_way) return rung;
  }
  return TryRung(loop, host, kind, {});
}

/// AppArmor lets an ordinary user make the namespace and refuses every use of it. A host that has
/// run out of something for a moment refuses nothing: its sandboxes must not get weaker for that.
bool IsNamespaceRefusal(const Error& error) {
  if (error.code != ErrorCode::kUnsupported) return false;
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
  Rung rung = TryUserNamespace(loop, host, kind);
  if (!rung.refused || !IsNamespaceRefusal(*rung.refused)) return rung;
  const std::optional<Level> level = NextBest(host, kind);
  if (!level) return rung;
  Rung next = TryRung(loop, host, kind, {.level = *level});
  if (next.refused) return rung;
  next.better_refused = std::move(rung.refused);
  return next;
}

View NamespaceView(const Host& host, Kind kind, const ViewProgress& progress) {
  return MakeView(host, kind, Level::kUserNamespace, progress);
}

View FilteredView(const Host& host, Network network, const std::string& workspace,
                  const std::string& tmp) {
  const ViewRequest request{
      .network = network, .landlock_abi = host.landlock_abi, .runtimes = host.runtimes};
  return Faulty("host-view") ? BuildHostView(request) : BuildFilteredView(request, workspace, tmp);
}

}  // namespace palmshed::backends::native
