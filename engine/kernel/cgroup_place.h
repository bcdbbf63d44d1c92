// Where this process stands in the hierarchies of control groups, out of /proc/self/cgroup and
// /proc/self/mountinfo (proc(5), cgroups(7)). For kernel/cgroup*.cc alone.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "palmshed/error.h"

namespace palmshed::kernel {

/// What is known about this process and its host, and how to make groups there; tests make it up.
struct CgroupHost {
  std::string self_cgroup;  ///< /proc/self/cgroup
  std::string mountinfo;    ///< /proc/self/mountinfo
  pid_t self = 0;
  bool root = false;  ///< This process is root, inside a user namespace or not.
  std::function<Result<void>(const std::string& directory)> make;
  std::function<Result<void>(const std::string& directory)> remove;
};

Result<CgroupHost> ThisCgroupHost();

/// This process's group in one hierarchy.
struct CgroupPlace {
  std::string mount;       ///< Where the hierarchy, or the part of it in view, is mounted.
  std::string group;       ///< Our own group's directory: `mount`, or below it.
  bool read_only = false;  ///< The mount is.
};

/// Our group in the hierarchy of that controller of cgroup v1; nullopt: none is in view.
std::optional<CgroupPlace> FindPlace1(const CgroupHost& host, std::string_view controller);
/// The same in cgroup v2.
std::optional<CgroupPlace> FindPlace2(const CgroupHost& host);

}  // namespace palmshed::kernel
