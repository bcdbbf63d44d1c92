#include "benchmarks/process_tree.h"

#include <sys/types.h>

#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace palmshed::benchmarks {
namespace {

/// 0 for a process that has gone. The name, in brackets, may itself hold brackets and spaces.
pid_t ParentOf(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  pid_t parent = 0;
  const char* from = line.data() + name_end + 4;  // ") S "
  if (from >= line.data() + line.size()) return 0;
  (void)std::from_chars(from, line.data() + line.size(), parent);
  return parent;
}

}  // namespace

std::vector<pid_t> Descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || *end != '\0') continue;
    children.emplace(ParentOf(entry.path()), pid);
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto child = first; child != last; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

}  // namespace palmshed::benchmarks
