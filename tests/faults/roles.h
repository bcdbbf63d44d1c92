// Which of the engine's processes one is.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace palmshed::tests {

/// docs/architecture.md has what they do. Each begins with its clone, before its exec.
enum class Role : std::uint8_t {
  kEngine,    ///< The host program, all threads of it.
  kStage,     ///< What the engine starts to make a launcher.
  kLauncher,  ///< Makes sandboxes.
  kInit,      ///< Of a sandbox.
  kBearer,    ///< What init has started, before it becomes a workload.
  kWorkload,  ///< Whatever else runs.
};

std::string_view ToString(Role role);
std::optional<Role> RoleNamed(std::string_view name);

/// Of the processes below one host program. What has been seen is remembered.
class Roles {
 public:
  explicit Roles(pid_t host);

  /// Of a thread, which has to be alive.
  Role Of(pid_t thread);
  /// It is about to execute a program, or to end.
  void Forget(pid_t thread) { known_.erase(thread); }
  /// The process that has lately been seen in a role and still is, or 0.
  pid_t Latest(Role role);

 private:
  struct Seen {
    pid_t process = 0;
    Role role{};
  };
  Seen Look(pid_t thread) const;

  pid_t host_;
  std::string host_command_;
  std::size_t host_depth_ = 0;
  std::map<pid_t, Seen> known_;
  std::map<Role, pid_t> latest_;
};

}  // namespace palmshed::tests
