// The host's half of the self-test: things that a sandbox must not reach, each shown to be
// reachable from outside.
#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::run {

/// A file, a TCP listener on loopback, and two UNIX sockets (abstract, and bound to a path). Gone
/// with the object.
class HostTargets {
 public:
  /// FS_ERROR or OVERLOADED when the host itself has no room for them; UNKNOWN when the positive
  /// control failed.
  static Result<HostTargets> Create();
  ~HostTargets();
  HostTargets(HostTargets&&) noexcept = default;
  HostTargets& operator=(HostTargets&&) noexcept = delete;
  HostTargets(const HostTargets&) = delete;
  HostTargets& operator=(const HostTargets&) = delete;

  std::uint16_t port() const { return port_; }
  const std::string& abstract_name() const { return abstract_name_; }
  std::string file() const { return directory_ + "/file"; }
  std::string socket() const { return directory_ + "/socket"; }

 private:
  HostTargets() = default;
  Result<void> MakeDirectory();
  Result<void> Listen();
  Result<void> CheckReachable() const;

  std::string directory_;  ///< World-readable, below the temporary directory.
  std::string abstract_name_;
  std::uint16_t port_ = 0;
  UniqueFd tcp_;
  UniqueFd abstract_;
  UniqueFd path_;
};

}  // namespace palmshed::run
