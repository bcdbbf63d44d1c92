#include "backends/native/rungs.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "backends/native/host.h"
#include "backends/native/launcher.h"
#include "backends/native/view.h"
#include "base/faults.h"
#include "base/loop.h"
#include "child/step_names.h"
#include "child/wire.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

/// Without a user namespace the sandbox sees its host uid, whichever it gets.
View MakeView(const Host& host, Kind kind, bool user_namespace) {
  const ViewRequest request{.network = kind.host_network ? Network::kAllow : Network::kDisabled,
                            .uid = user_namespace ? child::kInsideUid : host.uids.start,
                            .landlock_abi = host.landlock_abi,
                            .runtimes = host.runtimes.get()};
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

LauncherSetup MakeSetup(const Host& host, Kind kind, bool user_namespace) {
  LauncherSetup setup;
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
  if (!user_namespace) {
    setup.stage_flags |= child::kStageNoUserNamespace;
    setup.launcher_flags |= child::kLauncherNoUserNamespace;
  }
  const bool share = kind.host_network || Faulty("host-network");
  setup.launcher_flags |= share ? child::kLauncherHostNetwork : child::kLauncherSpareNetwork;
  return setup;
}

Rung TryRung(Loop& loop, const Host& host, Kind kind, bool user_namespace) {
  Rung rung{.user_namespace = user_namespace};
  LauncherSetup setup = MakeSetup(host, kind, user_namespace);
  setup.view = [&] {
    rung.view = std::make_shared<const View>(MakeView(host, kind, user_namespace));
    return EncodedView{.entries = static_cast<std::uint32_t>(rung.view->items.size()),
                       .records = EncodeView(rung.view->items)};
  };
  auto launcher = Launcher::Start(loop, host.helper.get(), setup);
  if (launcher) {
    rung.launcher = *std::move(launcher);
  } else {
    rung.refused = std::move(launcher.error());
  }
  return rung;
}

bool IsUserNamespaceRefusal(const Error& error) {
  return error.op == child::StepName(child::Step::kCloneLauncher) ||
         error.op == child::StepName(child::Step::kUidMap);
}

}  // namespace

Rung StartRung(Loop& loop, const Host& host, Kind kind) {
  Rung rung = TryRung(loop, host, kind, true);
  // Root can do without: the other namespaces need CAP_SYS_ADMIN only (namespaces(7)).
  if (rung.refused && host.root && IsUserNamespaceRefusal(*rung.refused)) {
    Rung direct = TryRung(loop, host, kind, false);
    if (!direct.refused) return direct;
  }
  return rung;
}

}  // namespace palmshed::backends::native
