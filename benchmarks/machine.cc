#include "benchmarks/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace palmshed::benchmarks {
namespace {

/// What follows `key` and a separator on the first line that starts with it.
std::string Field(const char* path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find(separator);
    if (!line.starts_with(key) || at == std::string::npos) continue;
    const auto from = line.find_first_not_of(" \t\"", at + 1);
    if (from == std::string::npos) return {};
    const auto last = line.find_last_not_of(" \t\"");
    return line.substr(from, last - from + 1);
  }
  return "unknown";
}

std::string Kernel() {
  utsname name{};
  if (::uname(&name) != 0) return "unknown";
  return std::string(name.release) + " " + name.machine;
}

}  // namespace

Machine ThisMachine() {
  return {.cpu = Field("/proc/cpuinfo", "model name", ':'),
          .cores = std::thread::hardware_concurrency(),
          .kernel = Kernel(),
          .distribution = Field("/etc/os-release", "PRETTY_NAME", '='),
          .user = ::geteuid() == 0 ? "root" : "ordinary user"};
}

}  // namespace palmshed::benchmarks
