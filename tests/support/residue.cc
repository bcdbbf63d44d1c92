#include "support/residue.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
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

/// Calls `each` with every directory below; one that vanishes meanwhile hides none of the others.
void ForEachDirectoryBelow(const fs::path& top, const std::function<void(const fs::path&)>& each) {
  std::error_code gone;
  for (fs::directory_iterator at(top, gone), end; !gone && at != end; at.increment(gone)) {
    std::error_code unknown;
    if (!at->is_directory(unknown) || at->is_symlink(unknown)) continue;
    each(at->path());
    ForEachDirectoryBelow(at->path(), each);
  }
}

std::set<std::string> Cgroups() {
  std::set<std::string> groups;
  ForEachDirectoryBelow("/sys/fs/cgroup", [&](const fs::path& path) {
    const std::string name = path.filename();
    if (name.starts_with("palmshed") || name.starts_with("sbx_")) groups.insert(path);
  });
  return groups;
}

std::set<std::string> SelfTests() {
  std::set<std::string> found;
  std::error_code gone;
  for (fs::directory_iterator at("/tmp", gone), end; !gone && at != end; at.increment(gone)) {
    if (at->path().filename().string().starts_with("palmshed-self-test-")) found.insert(at->path());
  }
  return found;
}

/// Whether the self-test whose it is holds it (flock(2)). One that cannot be opened is gone, or
/// another user's that is not finished.
bool IsInUse(const std::string& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return true;
  const bool locked = ::flock(fd, LOCK_SH | LOCK_NB) != 0;
  ::close(fd);
  return locked;
}

/// Whether a process is in a group or in one below it.
bool Runs(const std::string& group) {
  bool runs = !SlurpIfThere(group + "/cgroup.procs").empty();
  ForEachDirectoryBelow(group, [&](const fs::path& path) {
    runs = runs || !SlurpIfThere(path / "cgroup.procs").empty();
  });
  return runs;
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

bool IsBelowUs(pid_t pid, const std::map<pid_t, Entry>& all) {
  while (pid != ::getpid() && all.contains(pid)) pid = all.at(pid).parent;
  return pid == ::getpid();
}

/// Those whose locks a live process has open that is neither this one nor below it: another
/// engine's, in whose groups nothing may run for as long as nobody asks for it.
std::set<std::string> SandboxesOfOthers() {
  std::set<std::string> found;
  const auto all = AllProcesses();
  for (const auto& [pid, entry] : all) {
    if (IsBelowUs(pid, all)) continue;
    std::error_code gone;
    fs::directory_iterator at("/proc/" + std::to_string(pid) + "/fd", gone);
    for (; !gone && at != fs::directory_iterator(); at.increment(gone)) {
      std::error_code unknown;
      const fs::path file = fs::read_symlink(at->path(), unknown).filename();
      if (file.extension() == ".lock") found.insert(file.stem());
    }
  }
  return found;
}

bool IsGroup(const std::string& entry) { return entry.starts_with("cgroup: "); }

}  // namespace

Residue Residue::Snapshot() {
  return {.mounts = Lines("/proc/self/mountinfo"),
          .ipc = IpcObjects(),
          .cgroups = Cgroups(),
          .self_tests = SelfTests()};
}

std::vector<std::string> Residue::Since(const Residue& before) const {
  std::vector<std::string> left;
  AddNew(mounts, before.mounts, "mount", left);
  AddNew(ipc, before.ipc, "ipc", left);
  AddNew(cgroups, before.cgroups, "cgroup", left);
  for (const std::string& directory : self_tests) {
    if (before.self_tests.contains(directory) || IsInUse(directory)) continue;
    left.push_back("self-test: " + directory);
  }
  // Processes of this one's own are looked for elsewhere: a group in use is another engine's.
  if (std::ranges::none_of(left, IsGroup)) return left;
  std::erase_if(left, [others = SandboxesOfOthers()](const std::string& entry) {
    if (!IsGroup(entry)) return false;
    const fs::path group(entry.substr(entry.find('/')));
    return others.contains(group.filename()) || Runs(group);
  });
  return left;
}

std::vector<std::string> GroupsOf(std::string_view sandbox) {
  std::vector<std::string> groups;
  for (const std::string& path : Cgroups()) {
    if (fs::path(path).filename() != sandbox) continue;
    groups.push_back(path);
    std::error_code gone;
    for (fs::directory_iterator at(path, gone), end; !gone && at != end; at.increment(gone)) {
      if (at->is_directory(gone)) groups.push_back(at->path());
    }
  }
  std::ranges::sort(groups, std::greater(), &std::string::size);
  return groups;
}

void AdoptOrphans() { (void)::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<std::string> Descendants() {
  while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
  }
  const auto all = AllProcesses();
  std::vector<std::string> found;
  for (const auto& [pid, entry] : all) {
    if (entry.zombie || !IsBelowUs(entry.parent, all)) continue;
    found.push_back(std::to_string(pid) + " " + entry.name);
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
