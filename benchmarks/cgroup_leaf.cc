#include "benchmarks/cgroup_leaf.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

#include "benchmarks/die.h"

namespace palmshed::benchmarks {
namespace {

/// Where this process is in the hierarchy of one controller, as a directory.
std::string OwnGroup(const std::string& controller) {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::string key = ":" + controller + ":";
    if (const auto at = line.find(key); at != std::string::npos) {
      return "/sys/fs/cgroup/" + controller + line.substr(at + key.size());
    }
  }
  Die("no version 1 hierarchy of the controller " + controller);
}

}  // namespace

CgroupLeaf::CgroupLeaf(const std::string& name, const std::vector<std::string>& controllers) {
  for (const std::string& controller : controllers) {
    const std::string path = OwnGroup(controller) + "/" + name;
    if (::mkdir(path.c_str(), 0755) != 0) DieErrno("mkdir " + path);
    const int procs = ::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
    directories_.push_back({.path = path, .procs = procs});
    if (procs < 0) DieErrno("open " + path + "/cgroup.procs");
  }
}

CgroupLeaf::~CgroupLeaf() {
  for (const Directory& directory : directories_) {
    (void)::close(directory.procs);
    (void)::rmdir(directory.path.c_str());
  }
}

void CgroupLeaf::Attach(pid_t pid) const {
  std::array<char, 16> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), pid).ptr;
  const auto size = static_cast<std::size_t>(end - text.data());
  for (const Directory& directory : directories_) {
    if (::write(directory.procs, text.data(), size) < 0) DieErrno("write " + directory.path);
  }
}

}  // namespace palmshed::benchmarks
