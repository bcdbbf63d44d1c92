// A sandbox without a launcher. Making a launcher takes several times as long as making a sandbox,
// so the first of its kind is made by the engine itself: its init is a child of the loop's thread
// and builds its view alone. Whatever this way cannot do, a launcher does or refuses; so a failure
// here is no answer to anybody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backends/native/host.h"
#include "backends/native/rungs.h"
#include "backends/native/view.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "child/init_birth.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// One init on its way: started, then sent the parts of its view as they become known, then its
/// configuration. It works on each while the next is found out. Any thread; the destructor kills
/// what has not been finished, and waits.
class DirectInit {
 public:
  /// Of the sandbox on the host.
  struct Ids {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
  };
  struct Launched {
    UniqueFd socket;
    UniqueFd pidfd;
  };

  /// Starts it; it makes its namespaces. Nothing need be known of the host yet.
  static Result<std::unique_ptr<DirectInit>> Begin(Loop& loop, Kind kind);
  ~DirectInit();
  DirectInit(const DirectInit&) = delete;
  DirectInit& operator=(const DirectInit&) = delete;

  /// Gives it its ids. UNSUPPORTED where a sandbox made in this way would be less than another.
  Result<void> Identify(const Host& host, Ids ids);
  /// As root, what is shown is opened here, since init's uid need not reach it.
  Result<void> Show(std::span<const ViewItem> items);
  /// Sends the InitConfig, with the descriptors that init holds.
  Result<Launched> Finish(std::span<const std::byte> config, std::span<const BorrowedFd> locks);

 private:
  DirectInit() = default;
  Result<void> Prepare(Kind kind);
  child::Failure WriteMaps(bool root, Ids ids) const;
  Result<void> SendPart(std::span<const ViewItem> items);

  bool root_ = false;
  bool own_network_ = false;
  std::string options_{};
  UniqueFd socket_{};
  UniqueFd init_socket_{};
  UniqueFd engine_{};
  child::InitBirth birth_{};
  bool cloned_ = false;    ///< There is a child that nobody has been given.
  bool released_ = false;  ///< It is on its way to its exec.
};

}  // namespace palmshed::backends::native
