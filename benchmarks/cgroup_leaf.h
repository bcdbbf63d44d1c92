// A leaf in each of some version 1 hierarchies.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace palmshed::benchmarks {

/// Made below the group that this process is in; removed, when nothing is left in it, at the end.
class CgroupLeaf {
 public:
  /// Ends the benchmark where a hierarchy is missing or may not be written.
  CgroupLeaf(const std::string& name, const std::vector<std::string>& controllers);
  ~CgroupLeaf();
  CgroupLeaf(CgroupLeaf&& other) noexcept = default;
  CgroupLeaf& operator=(CgroupLeaf&&) = delete;
  CgroupLeaf(const CgroupLeaf&) = delete;
  CgroupLeaf& operator=(const CgroupLeaf&) = delete;

  /// Moves a process into the leaf of every hierarchy.
  void Attach(pid_t pid) const;

 private:
  struct Directory {
    std::string path;
    int procs = -1;
  };
  std::vector<Directory> directories_;
};

}  // namespace palmshed::benchmarks
