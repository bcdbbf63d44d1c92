// The processes of one sandbox, as /proc tells them (proc(5)).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

/// Numbers come round again; with the time of its start one is unique.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t started = 0;  ///< In clock ticks since boot.
  auto operator<=>(const ProcessId&) const = default;
};

/// One process, its threads taken together.
struct ProcessStat {
  ProcessId id{};
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';  ///< As in proc(5): R, S, D, Z, ...
  unsigned threads = 0;
  std::chrono::nanoseconds cpu{};         ///< Its own, in steps of 10 ms.
  std::chrono::nanoseconds waited_cpu{};  ///< Of the children that it has waited for.
};

/// The content of /proc/PID/stat; nullopt when it is not that.
std::optional<ProcessStat> ParseProcessStat(std::string_view text);

/// Tells whether anything happened to a few processes, for a fraction of what it costs to read a
/// table: their files stay open.
class ProcessPeek {
 public:
  static constexpr std::size_t kMost = 8;  ///< A descriptor for each.

  /// Of more than kMost processes there is no peek.
  static std::optional<ProcessPeek> Of(BorrowedFd proc, const std::vector<ProcessStat>& processes);
  /// True while all are as they were: times, page faults, threads, resident pages.
  bool Unchanged();

 private:
  struct Watched {
    UniqueFd stat;
    std::string text;
  };
  ProcessPeek() = default;
  std::vector<Watched> watched_;
};

/// Everything below one process. One thread at a time.
class ProcessTable {
 public:
  /// `init` is the first process of a pid namespace that has its own /proc mounted. Only that
  /// namespace is looked at, and numbers are those inside.
  static Result<ProcessTable> OfNamespace(pid_t init);
  /// `init` adopts its orphans (PR_SET_CHILD_SUBREAPER), or is the first of a pid namespace. Looks
  /// at the whole host, at each process that is not below `init` once; numbers are the host's.
  static Result<ProcessTable> Below(pid_t init);

  /// All that are there now, `init` first. What starts or ends meanwhile may be missing. An error
  /// when `init` is gone.
  Result<std::vector<ProcessStat>> Read();
  /// Children of `init`'s first thread, by number: what it has adopted, and what that thread itself
  /// has started. Other threads' are not among them.
  Result<std::set<pid_t>> Orphans() const;
  /// The table's own number for a process of the host.
  Result<pid_t> NumberOf(pid_t process) const;
  /// As in Read; an error when there is no such process.
  Result<ProcessStat> Stat(pid_t number) const;
  /// The /proc that the numbers are of.
  BorrowedFd directory() const { return list_.fd(); }

 private:
  struct Seen {
    std::uint64_t inode;  ///< Of its directory: another process of that number has another.
    ProcessStat stat;
  };
  ProcessTable(sys::Directory list, ProcessId init, bool whole_host)
      : list_(std::move(list)), init_(init), whole_host_(whole_host) {}
  std::vector<ProcessStat> KeepBelow(const std::map<pid_t, Seen>& all);

  sys::Directory list_;
  ProcessId init_;
  bool whole_host_;
  std::map<pid_t, std::uint64_t> foreign_;  ///< Not below init, by the inode of their directory.
};

}  // namespace palmshed::kernel
