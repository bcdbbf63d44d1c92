#include "backends/native/sampled_memory.h"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/faults.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "kernel/process_memory.h"
#include "kernel/process_table.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {
namespace {

using kernel::MemoryUse;
using kernel::ProcessId;
using kernel::ProcessStat;

// A child made by vfork(2) shares its parent's memory, which then shows in both. The kernel does
// not tell, so both are taken for one while it looks like that; but not for longer than a vfork
// takes, or it would be a place to hide.
constexpr auto kVforkTime = std::chrono::milliseconds(500);

bool IsGone(const Error& error) { return error.sys_errno == ENOENT || error.sys_errno == ESRCH; }

bool HasSwap() {
  struct sysinfo info{};
  return ::sysinfo(&info) == 0 && info.totalswap > 0;
}

// Where the first thread has ended while others go on, its files tell of no memory.
std::string PathOf(BorrowedFd proc, const ProcessStat& stat) {
  std::string path = std::to_string(stat.id.pid);
  if (stat.state != 'Z' || stat.threads < 2) return path;
  auto fd = sys::OpenAt(proc, path + "/task", O_RDONLY | O_DIRECTORY);
  if (!fd) return path;
  auto list = sys::Directory::Read(*std::move(fd));
  if (!list) return path;
  for (auto entry = list->Next(); entry && *entry; entry = list->Next()) {
    if ((*entry)->name != path) return path + "/task/" + (*entry)->name;
  }
  return path;
}

}  // namespace

Result<std::uint64_t> MemoryMeter::PlacesUse(const MemoryPlaces& places) {
  std::uint64_t sum = 0;
  for (const UniqueFd& directory : places.tmpfs) {
    PALMSHED_TRY(const std::uint64_t use, kernel::TmpfsUse(directory.get()));
    sum += use;
  }
  if (places.sysv < 0) return sum;
  PALMSHED_TRY(const std::uint64_t segments, kernel::SysvUse(places.sysv));
  return sum + segments;
}

Result<void> MemoryMeter::Begin(const MemoryPlaces& places) {
  PALMSHED_TRY(places_before_, PlacesUse(places));
  peak_ = 0;
  bound_at_peak_ = 0;
  sharers_.clear();
  return {};
}

Result<std::vector<MemoryMeter::Process>> MemoryMeter::ReadProcesses(
    const MemoryPlaces& places, const std::vector<ProcessStat>& members) {
  std::vector<Process> processes;
  processes.reserve(members.size());
  for (const ProcessStat& member : members) {
    if (member.state == 'Z' && member.threads < 2) continue;
    Process process{.path = PathOf(places.proc, member), .resident = {}, .stat = &member};
    const auto resident = kernel::ReadResident(places.proc, process.path);
    if (!resident && IsGone(resident.error())) continue;
    PALMSHED_TRY(process.resident, resident);
    processes.push_back(std::move(process));
  }
  DropSharers(processes);
  return processes;
}

void MemoryMeter::DropSharers(std::vector<Process>& processes) {
  std::map<pid_t, const Process*> sleeping;  // In vfork(2) the parent cannot be interrupted.
  for (const Process& process : processes) {
    if (process.stat->state == 'D') sleeping[process.stat->id.pid] = &process;
  }
  std::map<ProcessId, Clock::time_point> sharers;
  const auto now = Clock::now();
  const auto shares = [&](const Process& process) {
    const auto parent = sleeping.find(process.stat->parent);
    if (parent == sleeping.end()) return false;
    const auto& theirs = parent->second->resident;
    if (theirs.anonymous != process.resident.anonymous ||
        theirs.shared != process.resident.shared) {
      return false;
    }
    const auto known = sharers_.find(process.stat->id);
    const auto since = known == sharers_.end() ? now : known->second;
    sharers[process.stat->id] = since;
    return now - since < kVforkTime;
  };
  std::vector<Process> kept;
  for (const Process& process : processes) {
    if (!shares(process)) kept.push_back(process);
  }
  processes = std::move(kept);
  sharers_ = std::move(sharers);
}

Result<MemoryMeter::Files> MemoryMeter::MeasureFiles(const MemoryPlaces& places,
                                                     const std::vector<Process>& processes) const {
  Files files;
  PALMSHED_TRY(const std::uint64_t use, PlacesUse(places));
  files.bytes = use > places_before_ ? use - places_before_ : 0;
  for (const Process& process : processes) {
    const auto added =
        kernel::AddMemfds(places.proc, process.path, places.memfd_device, files.memfds);
    // EACCES: not ours to inspect (a program that may not be read, without namespaces).
    if (!added && !IsGone(added.error()) && added.error().sys_errno != EACCES) {
      return std::unexpected(added.error());
    }
  }
  for (const auto& [file, bytes] : files.memfds) files.bytes += bytes;
  return files;
}

Result<MemoryMeter::Reading> MemoryMeter::Measure(const MemoryPlaces& places,
                                                  const std::vector<ProcessStat>& members,
                                                  std::uint64_t limit) {
  PALMSHED_TRY(const std::vector<Process> processes, ReadProcesses(places, members));
  PALMSHED_TRY(const Files files, MeasureFiles(places, processes));
  std::uint64_t anonymous = 0;
  std::uint64_t shared = 0;
  std::uint64_t largest = 0;
  for (const Process& process : processes) {
    anonymous += process.resident.anonymous;
    shared += process.resident.shared;
    largest = std::max(largest, process.resident.anonymous);
  }
  // Resident sets may have pages in common; the largest of them is at least there.
  std::uint64_t used = largest + files.bytes;
  const std::uint64_t bound = anonymous + shared + files.bytes;
  const bool enough = bound <= limit && !HasSwap();
  const bool peak_known = bound <= bound_at_peak_ + bound_at_peak_ / 8;
  if (!enough || !peak_known) {
    PALMSHED_TRY(used, MeasureExactly(places, processes, files, limit));
    bound_at_peak_ = std::max(bound, bound_at_peak_);
  }
  peak_ = std::max(peak_, used);
  return Reading{.at_least = used, .at_most = std::max(used, bound)};
}

Result<std::uint64_t> MemoryMeter::MeasureExactly(const MemoryPlaces& places,
                                                  const std::vector<Process>& processes,
                                                  const Files& files, std::uint64_t limit) const {
  MemoryUse resident;
  MemoryUse proportional;
  std::map<std::string, std::uint64_t> mapped;  // By process.
  for (const Process& process : processes) {
    auto rough = kernel::ReadResidentUse(places.proc, process.path);
    if (!rough && IsGone(rough.error())) continue;
    PALMSHED_TRY(const MemoryUse use, rough);
    resident.anonymous += use.anonymous;
    resident.shmem += use.shmem;
  }
  const std::uint64_t rough = resident.anonymous + resident.shmem + files.bytes;
  if (Faulty("shared-counts-twice")) return rough;
  if (processes.size() < 2 && rough <= limit) {
    return resident.anonymous + std::max(resident.shmem, files.bytes);
  }
  for (const Process& process : processes) {
    auto walked = kernel::ReadProportionalUse(places.proc, process.path);
    if (!walked && IsGone(walked.error())) continue;
    // Not ours to inspect: what it shares then counts in it as a whole.
    if (!walked) walked = kernel::ReadResidentUse(places.proc, process.path);
    if (!walked) continue;
    proportional.anonymous += walked->anonymous;
    proportional.shmem += walked->shmem;
    mapped[process.path] = walked->shmem;
  }
  const std::uint64_t at_most = proportional.anonymous + proportional.shmem + files.bytes;
  const std::uint64_t at_least = proportional.anonymous + std::max(proportional.shmem, files.bytes);
  if (at_most <= limit || at_least > limit) return at_least;
  std::uint64_t exact = proportional.anonymous + files.bytes;
  for (const auto& [path, shmem] : mapped) {
    if (shmem == 0) continue;
    const auto other = kernel::ReadOtherShmem(places.proc, path, places.memfd_device, files.memfds,
                                              places.sysv >= 0);
    exact += other.value_or(0);
  }
  return exact;
}

}  // namespace palmshed::backends::native
