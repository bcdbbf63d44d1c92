#include "kernel/cgroup_room.h"

#include <sys/types.h>

#include <cerrno>
#include <charconv>
#include <expected>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "kernel/cgroup_files.h"
#include "kernel/process_table.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

/// What is born of a process that has been moved is born where that is, so few looks are needed.
constexpr int kMostLooks = 32;

/// 0 stands for a process that our pid namespace does not show, and -1 here for what is no number.
Result<std::vector<pid_t>> MembersOf(const std::string& group) {
  PALMSHED_TRY(const std::string text, sys::ReadFile(group + "/cgroup.procs"));
  std::vector<pid_t> members;
  for (const std::string_view line : Split(text, '\n')) {
    if (line.empty()) continue;
    pid_t pid = -1;
    (void)std::from_chars(line.data(), line.data() + line.size(), pid);
    members.push_back(pid);
  }
  return members;
}

/// Those of `members` that descend from the table's process; EBUSY when others are among them.
/// Precondition: the members were read before, so that each of the table's that still lives is
/// found.
Result<std::vector<pid_t>> OnlyOwn(const std::vector<pid_t>& members, ProcessTable& table) {
  PALMSHED_TRY(const auto processes, table.Read());
  std::set<pid_t> own;
  for (const ProcessStat& process : processes) own.insert(process.id.pid);
  std::vector<pid_t> found;
  for (const pid_t pid : members) {
    if (pid > 0 && own.contains(pid)) {
      found.push_back(pid);
    } else if (pid <= 0 || sys::PidfdOpen(pid)) {
      // It is there, whether or not /proc shows it to us.
      return std::unexpected(SysError("cgroup.procs", EBUSY));
    }
  }
  return found;
}

Result<void> Move(pid_t pid, const std::string& to) {
  auto moved = WriteGroupFile(to + "/cgroup.procs", std::to_string(pid));
  if (!moved && moved.error().sys_errno == ESRCH) return {};  // It has ended.
  return moved;
}

}  // namespace

Result<void> MoveDescendants(const std::string& from, const std::string& to, pid_t self) {
  PALMSHED_TRY(ProcessTable table, ProcessTable::Below(self));
  for (int look = 0; look < kMostLooks; ++look) {
    PALMSHED_TRY(const auto members, MembersOf(from));
    if (members.empty()) return {};
    // A process whose parent has just ended is taken for a stranger, until the next look.
    const auto own = OnlyOwn(members, table);
    if (!own && own.error().sys_errno != EBUSY) return std::unexpected(own.error());
    if (!own) continue;
    for (const pid_t pid : *own) PALMSHED_TRY_VOID(Move(pid, to));
  }
  return std::unexpected(SysError("cgroup.procs", EBUSY, from));
}

}  // namespace palmshed::kernel
