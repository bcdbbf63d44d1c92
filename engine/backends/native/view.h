// What a sandbox sees of files: the list of things its root is made of, and the Landlock rules that
// say the same once more, so that a mistake in one of the two does not open the host.
//
// The private view holds /usr, a few public files of /etc, the runtimes found on PATH and
// directories of the sandbox's own. The host view (the caller opted out of file isolation) is the
// host's tree with the rights of the sandbox's user; /proc, /dev, /tmp and /workspace stay private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/native/runtimes.h"
#include "child/wire.h"
#include "kernel/landlock.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {

/// One child::ViewEntry before it is encoded; `a` and `b` as described there.
struct ViewItem {
  child::ViewOp op;
  std::uint32_t flags = 0;
  std::uint32_t mode = 0755;
  std::string a{};
  std::string b{};
  std::uint32_t tree = 0;
  bool operator==(const ViewItem&) const = default;
};

/// One child::LandlockRule before it is encoded.
struct LandlockRulePlan {
  std::string path;
  std::uint64_t access = 0;
  bool optional = false;
  bool operator==(const LandlockRulePlan&) const = default;
};

struct ViewRequest {
  Network network = Network::kDisabled;
  std::uint32_t uid = child::kInsideUid;  ///< As the sandbox sees itself; also its gid.
  int landlock_abi = 0;                   ///< kernel::LandlockAbi().
  bool proc = true;                       ///< A fresh /proc can be mounted.
  /// Looked for when they are needed, which is late.
  std::shared_future<Runtimes> runtimes = KnownRuntimes();
  std::string host_root{};  ///< Where the host's tree is looked at; empty: /.
};

struct View {
  std::vector<ViewItem> items{};  ///< In the order in which they are made.
  std::vector<LandlockRulePlan> rules{};
  kernel::LandlockRights handled{};     ///< For InitConfig; all zero: no Landlock here.
  std::vector<ViewItem> host_mounts{};  ///< What a sandbox shows beside, for InitConfig.
  /// A part of the host could not be looked at: without it programs would be missing.
  std::optional<Error> failed{};
  bool any_uid = false;  ///< Its /etc names some uid; each sandbox has one of its own.
};

/// Gets the items of a view as they become known, each once and in order.
using ViewProgress = std::function<void(std::span<const ViewItem>)>;

/// The sandbox's own tree.
View BuildPrivateView(const ViewRequest& request, const ViewProgress& progress = {});
/// The host's tree, writable as far as its permissions go. /run and /sys are left out: sockets of
/// the host's services live in the one, and the other holds the machinery of the limits.
View BuildHostView(const ViewRequest& request, const ViewProgress& progress = {});
/// No tree at all, only rules for the host's own: `workspace` and `tmp` (host paths) are writable,
/// the runtime is readable. TCP is closed when the network is disabled; else what names are looked
/// up with is readable.
View BuildFilteredView(const ViewRequest& request, const std::string& workspace,
                       const std::string& tmp);

/// The records that follow LauncherConfig and ViewPart.
std::vector<std::byte> EncodeView(std::span<const ViewItem> items);
/// The records that follow InitConfig and the filter.
std::vector<std::byte> EncodeRules(std::span<const LandlockRulePlan> rules);

}  // namespace palmshed::backends::native
