// The host's half of the self-test: things that a sandbox must not reach, each shown to be
// reachable from outside.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "run/selftest_directory.h"

namespace palmshed::run {

/// A file, a TCP listener on loopback, and two UNIX sockets (abstract, and bound to a path). Gone
/// with the object.
class HostTargets {
 public:
  /// FS_ERROR or OVERLOADED when the host itself has no room for them; UNKNOWN when the positive
  /// control failed.
  static Result<HostTargets> Create();

  std::uint16_t port() const { return port_; }
  const std::string& abstract_name() const { return abstract_name_; }
  std::string file() const { return directory_.PathOf(kFile); }
  std::string socket() const { return directory_.PathOf("socket"); }

 private:
  static constexpr char kFile[] = "file";

  explicit HostTargets(SelfTestDirectory directory) : directory_(std::move(directory)) {}
  Result<void> Listen();
  Result<void> CheckReachable() const;

  SelfTestDirectory directory_;
  std::string abstract_name_;
  std::uint16_t port_ = 0;
  UniqueFd tcp_;
  UniqueFd abstract_;
  UniqueFd path_;
};

}  // namespace palmshed::run
