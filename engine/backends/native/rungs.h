// The rungs of isolation that a host may allow, and the launcher that stands on one.
#pragma once

#include <compare>
#include <memory>
#include <optional>

#include "backends/native/host.h"
#include "backends/native/launcher.h"
#include "backends/native/view.h"
#include "base/loop.h"
#include "palmshed/error.h"

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
  std::shared_ptr<const View> view{};    ///< Shared: every create takes a copy of its rung.
  bool user_namespace = true;            ///< False: root without user namespaces.
  std::optional<Error> refused{};
};

/// Starts a launcher on the best rung that the host allows.
Rung StartRung(Loop& loop, const Host& host, Kind kind);

}  // namespace palmshed::backends::native
