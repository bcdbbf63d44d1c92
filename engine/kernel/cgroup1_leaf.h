// The group of one execution in cgroup v1. For kernel/cgroup1*.cc alone.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// The directory of one group in each hierarchy; empty: there is none. Controllers that are mounted
/// together share one.
struct Group1 {
  std::string memory{};
  std::string pids{};
  std::string cpu{};
  std::string cpuacct{};
  std::string unified{};

  /// The group `name` below, in each.
  Group1 Below(const std::string& name) const;
  /// Each directory once. The one that can kill comes first.
  std::vector<std::string> Directories() const;
};

/// Whether memory of this tree is counted together with swap.
enum class Swap : bool { kNotCounted, kCounted };

/// How often memory ran out in a group or in one above it: the kernel tells all groups below the
/// one whose limit was met, from the top downwards (mem_cgroup_oom_notify). Any thread.
class OomCount {
 public:
  /// Zero for ever in the root, which nothing limits.
  static Result<std::shared_ptr<OomCount>> Of(const std::string& group);
  explicit OomCount(UniqueFd event) : event_(std::move(event)) {}
  std::uint64_t Total();

 private:
  std::mutex mu_;
  const UniqueFd event_;
  std::uint64_t total_ = 0;
};

/// A leaf whose directories have been made; it removes them. `above` counts in a group above, and
/// is shared by all leaves of a tree.
std::unique_ptr<CgroupLeaf> MakeLeaf1(Group1 leaf, std::shared_ptr<OomCount> above, Swap swap);

}  // namespace palmshed::kernel
