#include "faults/roles.h"

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

constexpr std::array<std::string_view, 6> kNames{"engine", "stage",  "launcher",
                                                 "init",   "bearer", "workload"};

std::string PathOf(pid_t thread, const std::string& file) {
  return "/proc/" + std::to_string(thread) + "/" + file;
}

/// Without pid namespaces, what starts inits.
constexpr std::string_view kSupervisor = "palmshed-superv\n";

struct Numbers {
  pid_t process = 0;
  pid_t parent = 0;
  std::vector<pid_t> inside;  ///< In each pid namespace, from that of the test inwards.
};

Numbers NumbersOf(pid_t thread) {
  std::istringstream status(SlurpIfThere(PathOf(thread, "status")));
  Numbers numbers;
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (key == "Tgid:") words >> numbers.process;
    if (key == "PPid:") words >> numbers.parent;
    if (key != "NStgid:") continue;
    for (pid_t number = 0; words >> number;) numbers.inside.push_back(number);
  }
  return numbers;
}

/// The second argument, which is the helper's role.
std::string RoleArgument(const std::string& command) {
  const std::size_t first = command.find('\0');
  if (first == command.npos || command.substr(0, first) != "palmshed-init") return "";
  return command.substr(first + 1, command.find('\0', first + 1) - first - 1);
}

}  // namespace

std::string_view ToString(Role role) { return kNames.at(static_cast<std::size_t>(role)); }

std::optional<Role> RoleNamed(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames.at(i) == name) return static_cast<Role>(i);
  }
  return std::nullopt;
}

Roles::Roles(pid_t host)
    : host_(host),
      host_command_(SlurpIfThere(PathOf(host, "cmdline"))),
      host_depth_(NumbersOf(host).inside.size()) {}

Role Roles::Of(pid_t thread) {
  const auto found = known_.find(thread);
  if (found != known_.end()) return found->second.role;
  const Seen seen = Look(thread);
  known_[thread] = seen;
  latest_[seen.role] = seen.process;
  return seen.role;
}

Roles::Seen Roles::Look(pid_t thread) const {
  const Numbers numbers = NumbersOf(thread);
  Seen seen{.process = numbers.process, .role = Role::kWorkload};
  if (numbers.process == host_) {
    seen.role = Role::kEngine;
    return seen;
  }
  const std::string command = SlurpIfThere(PathOf(thread, "cmdline"));
  const std::string argument = RoleArgument(command);
  const std::size_t depth = numbers.inside.size() - std::min(host_depth_, numbers.inside.size());
  if (command == host_command_) {
    seen.role = depth == 0 ? Role::kStage : Role::kInit;
  } else if (argument == "stage") {
    seen.role = depth == 0 ? Role::kStage : Role::kLauncher;
  } else if (argument == "launcher") {
    seen.role = depth <= 1 ? Role::kLauncher : Role::kInit;
  } else if (argument == "sandbox" || argument == "direct") {
    const bool is_init = depth == 0 ? SlurpIfThere(PathOf(numbers.parent, "comm")) == kSupervisor
                                    : numbers.inside.back() == 1;
    seen.role = is_init ? Role::kInit : Role::kBearer;
  }
  return seen;
}

pid_t Roles::Latest(Role role) {
  const auto found = latest_.find(role);
  if (found == latest_.end()) return 0;
  const Seen now = Look(found->second);
  return now.process == found->second && now.role == role ? now.process : 0;
}

}  // namespace palmshed::tests
