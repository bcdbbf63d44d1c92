#include "cli/output/flag_name.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace palmshed::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kFlags{
    {{"cpuQuota", "--cpus"},
     {"cpuTimeLimit", "--cpu-time"},
     {"degraded", "--degraded"},
     {"diskQuota", "--disk"},
     {"env", "--env"},
     {"maxOutputBytes", "--max-output"},
     {"memory", "--memory"},
     {"mounts", "--volume"},
     {"name", "--name"},
     {"network", "--network"},
     {"osFilesystemIsolation", "--osfs"},
     {"pids", "--pids-limit"},
     {"storage", "--storage"},
     {"timeout", "--timeout"},
     {"tty", "--tty"},
     {"workDir", "--workdir"}}};

}  // namespace

std::string_view FlagFor(std::string_view field) {
  const std::string_view head = field.substr(0, field.find_first_of("[."));
  const auto* const found =
      std::ranges::find(kFlags, head, [](const auto& entry) { return entry.first; });
  return found == kFlags.end() ? std::string_view() : found->second;
}

}  // namespace palmshed::cli
