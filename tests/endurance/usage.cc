#include "endurance/usage.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <system_error>

#include "support/residue.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

namespace fs = std::filesystem;

std::size_t EntriesOf(const std::string& directory) {
  std::error_code gone;
  const fs::directory_iterator begin(directory, gone);
  return static_cast<std::size_t>(std::distance(begin, fs::directory_iterator()));
}

/// Of proc_pid_status(5); 0 once the process has ended.
std::size_t StatusOf(const std::string& process, const std::string& key) {
  std::istringstream status(SlurpIfThere("/proc/" + process + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoul(line.substr(key.size() + 1));
  }
  return 0;
}

std::size_t LinesOf(const std::string& path) {
  const std::string text = SlurpIfThere(path);
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

}  // namespace

Usage Usage::Now() {
  Usage usage{.descriptors = EntriesOf("/proc/self/fd"),
              .threads = StatusOf("self", "Threads"),
              .memory_kib = StatusOf("self", "RssAnon"),
              .mounts = LinesOf("/proc/self/mountinfo"),
              .cgroups = Residue::Snapshot().cgroups.size()};
  for (const std::string& process : Descendants()) {
    const std::string number = process.substr(0, process.find(' '));
    ++usage.processes;
    usage.helpers_kib += StatusOf(number, "RssAnon");
    usage.mounts += LinesOf("/proc/" + number + "/mountinfo");
  }
  return usage;
}

std::ostream& operator<<(std::ostream& out, const Usage& usage) {
  return out << usage.descriptors << " descriptors, " << usage.threads << " threads, "
             << usage.processes << " processes, " << usage.memory_kib << " and "
             << usage.helpers_kib << " KiB, " << usage.mounts << " mounts, " << usage.cgroups
             << " cgroups";
}

}  // namespace palmshed::tests
