#include "benchmarks/footprint.h"

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "benchmarks/process_tree.h"

namespace palmshed::benchmarks {
namespace {

std::string ProcessFile(pid_t pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

/// The number after `key`; 0 where there is none, as for a process that has gone.
double Field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::strtod(line.c_str() + key.size() + 1, nullptr);
  }
  return 0;
}

/// Sandboxes' inits have their role as the first argument, what they started has another program.
bool IsHelperOfEngine(pid_t pid) {
  std::ifstream file(ProcessFile(pid, "cmdline"));
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  constexpr std::array kRoles{"stage", "launcher", "supervisor"};
  for (const char* role : kRoles) {
    if (words.find(std::string(1, '\0') + role + '\0') != std::string::npos) return true;
  }
  return false;
}

void Add(Share& share, pid_t pid) {
  share.pss += Field(ProcessFile(pid, "smaps_rollup"), "Pss");
  share.page_tables += Field(ProcessFile(pid, "status"), "VmPTE");
}

}  // namespace

Footprint MeasureFootprint() {
  Footprint footprint;
  Add(footprint.engine, ::getpid());
  for (const pid_t pid : Descendants(::getpid())) {
    Add(IsHelperOfEngine(pid) ? footprint.engine : footprint.sandboxes, pid);
  }
  for (const char* key : {"Slab", "KernelStack", "Percpu"}) {
    footprint.kernel += Field("/proc/meminfo", key);
  }
  return footprint;
}

}  // namespace palmshed::benchmarks
