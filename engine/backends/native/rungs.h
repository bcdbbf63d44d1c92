// The rungs of isolation that a host may allow, and the launcher that stands on one.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>

#include "backends/native/host.h"
#include "backends/native/launcher.h"
#include "backends/native/view.h"
#include "base/loop.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {

/// What a launcher is made for: every sandbox of it has the same file view and network.
struct Kind {
  bool private_view = true;   ///< Else the host's files.
  bool host_network = false;  ///< Else a network namespace for each sandbox.
  bool proc = true;           ///< A fresh /proc.
  auto operator<=>(const Kind&) const = default;
};

/// A launcher that runs, or the reason why none can.
struct Rung {
  std::shared_ptr<Launcher> launcher{};  ///< Null when refused.
  /// Shared: every create takes a copy of its rung. Empty when `filtered`: there each sandbox has
  /// rules of its own.
  std::shared_ptr<const View> view{};
  bool filtered = false;        ///< No namespaces: Landlock and seccomp alone.
  bool groups_dropped = false;  ///< Supplementary groups of the engine's user do not get inside.
  std::optional<Error> refused{};
  std::optional<Error> better_refused{};  ///< With `filtered`: why there are no namespaces.
};

/// Starts a launcher on the best rung that the host allows.
Rung StartRung(Loop& loop, const Host& host, Kind kind);

/// What a sandbox with namespaces of its own sees.
View NamespaceView(const Host& host, Kind kind, const ViewProgress& progress);

/// The rules of one sandbox on the filtered rung; `workspace` and `tmp` are host paths.
View FilteredView(const Host& host, Network network, const std::string& workspace,
                  const std::string& tmp);

}  // namespace palmshed::backends::native
