#include "support/residue.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

namespace fs = std::filesystem;

std::set<std::string> Lines(const std::string& path) {
  std::ifstream file(path);
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.insert(line);
  return lines;
}

/// The counters of a line change; type, key and id name the object.
std::set<std::string> IpcObjects() {
  std::set<std::string> objects;
  for (const char* kind : {"shm", "sem", "msg"}) {
    for (const std::string& line : Lines(std::string("/proc/sysvipc/") + kind)) {
      std::istringstream words(line);
      std::string key, id;
      words >> key >> id;
      objects.insert(std::string(kind) + " " + key + " " + id);
    }
  }
  return objects;
}

std::set<std::string> Cgroups() {
  std::set<std::string> groups;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at("/sys/fs/cgroup", options, error), end;
       !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (at->is_directory(error) && (name.starts_with("palmshed") || name.starts_with("sbx_"))) {
      groups.insert(at->path());
    }
  }
  return groups;
}

void AddNew(const std::set<std::string>& now, const std::set<std::string>& before,
            const std::string& kind, std::vector<std::string>& into) {
  for (const std::string& entry : now) {
    if (!before.contains(entry)) into.push_back(kind + ": " + entry);
  }
}

struct Entry {
  pid_t parent = 0;
  std::string name;
  bool zombie = false;
};

std::map<pid_t, Entry> AllProcesses() {
  std::map<pid_t, Entry> all;
  for (const auto& directory : fs::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(directory.path().filename().c_str());
    if (pid <= 0) continue;
    const std::string line = SlurpIfThere(directory.path() / "stat");
    const std::size_t open = line.find('('), close = line.rfind(')');
    if (open == line.npos || close == line.npos) continue;
    std::istringstream rest(line.substr(close + 1));
    Entry entry{.name = line.substr(open + 1, close - open - 1)};
    std::string state;
    rest >> state >> entry.parent;
    entry.zombie = state == "Z";
    all[pid] = entry;
  }
  return all;
}

}  // namespace

Residue Residue::Snapshot() {
  return {.mounts = Lines("/proc/self/mountinfo"), .ipc = IpcObjects(), .cgroups = Cgroups()};
}

std::vector<std::string> Residue::Since(const Residue& before) const {
  std::vector<std::string> left;
  AddNew(mounts, before.mounts, "mount", left);
  AddNew(ipc, before.ipc, "ipc", left);
  AddNew(cgroups, before.cgroups, "cgroup", left);
  return left;
}

void AdoptOrphans() { (void)::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<std::string> Descendants() {
  while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
  }
  const auto all = AllProcesses();
  std::vector<std::string> found;
  for (const auto& [pid, entry] : all) {
    if (entry.zombie) continue;
    pid_t at = entry.parent;
    while (at != ::getpid() && all.contains(at)) at = all.at(at).parent;
    if (at == ::getpid()) found.push_back(std::to_string(pid) + " " + entry.name);
  }
  return found;
}

std::vector<std::string> TreeOf(const std::string& directory) {
  std::vector<std::string> names;
  // What vanishes under the walk was on its way out: the walk ends there, and the caller, who waits
  // for nothing to be left, looks again.
  std::error_code gone;
  fs::recursive_directory_iterator at(directory, gone);
  for (; !gone && at != fs::recursive_directory_iterator(); at.increment(gone)) {
    names.push_back(at->path().lexically_relative(directory));
  }
  if (gone) names.emplace_back("(changing: " + gone.message() + ")");
  std::ranges::sort(names);
  return names;
}

}  // namespace palmshed::tests
