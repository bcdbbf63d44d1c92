#include "kernel/process_table.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

template <class Number>
std::optional<Number> ParseAs(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Takes the next word off the front of `text`.
std::string_view NextWord(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \n"));
  text.remove_prefix(word.size());
  return word;
}

std::chrono::nanoseconds Ticks(std::uint64_t count) {
  const auto per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return std::chrono::nanoseconds(static_cast<std::int64_t>(count * (1'000'000'000 / per_second)));
}

Result<ProcessStat> ReadStat(BorrowedFd proc, pid_t number) {
  const std::string name = std::to_string(number) + "/stat";
  PALMSHED_TRY(const UniqueFd file, sys::OpenAt(proc, name, O_RDONLY));
  std::array<std::byte, 1024> content;
  PALMSHED_TRY(const std::size_t size, sys::Read(file.get(), content));
  auto stat = ParseProcessStat({reinterpret_cast<const char*>(content.data()), size});
  if (!stat) return std::unexpected(SysError("read", EBADMSG, name));
  return *stat;
}

Result<sys::Directory> OpenProc(const std::string& path) {
  PALMSHED_TRY(UniqueFd fd, sys::Open(path, O_RDONLY | O_DIRECTORY));
  struct statfs fs{};
  if (::fstatfs(fd.get(), &fs) < 0) return std::unexpected(SysError("fstatfs", errno, path));
  if (fs.f_type != PROC_SUPER_MAGIC) return std::unexpected(SysError("open", ENODEV, path));
  return sys::Directory::Read(std::move(fd));
}

enum class Place : std::uint8_t { kBelow, kElsewhere, kUnknown };

}  // namespace

std::optional<ProcessStat> ParseProcessStat(std::string_view text) {
  // The name, in brackets, may hold anything, brackets included.
  const std::size_t name_end = text.rfind(')');
  const auto pid = ParseAs<pid_t>(text.substr(0, text.find(' ')));
  if (name_end == std::string_view::npos || !pid) return std::nullopt;
  text.remove_prefix(name_end + 1);
  std::array<std::string_view, 20> words;  // From the third field, the state, on.
  for (std::string_view& word : words) word = NextWord(text);
  std::array<std::uint64_t, 4> times{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto time = ParseAs<std::int64_t>(words[11 + i]);
    if (!time || *time < 0) return std::nullopt;
    times[i] = static_cast<std::uint64_t>(*time);
  }
  const auto parent = ParseAs<pid_t>(words[1]);
  const auto session = ParseAs<pid_t>(words[3]);
  const auto threads = ParseAs<unsigned>(words[17]);
  const auto started = ParseAs<std::uint64_t>(words[19]);
  if (words[0].size() != 1 || !parent || !session || !threads || !started) return std::nullopt;
  return ProcessStat{.id = {.pid = *pid, .started = *started},
                     .parent = *parent,
                     .session = *session,
                     .state = words[0][0],
                     .threads = *threads,
                     .cpu = Ticks(times[0] + times[1]),
                     .waited_cpu = Ticks(times[2] + times[3])};
}

std::optional<ProcessPeek> ProcessPeek::Of(BorrowedFd proc,
                                           const std::vector<ProcessStat>& processes) {
  if (processes.size() > kMost) return std::nullopt;
  ProcessPeek peek;
  for (const ProcessStat& process : processes) {
    auto stat = sys::OpenAt(proc, std::to_string(process.id.pid) + "/stat", O_RDONLY);
    if (!stat) return std::nullopt;
    peek.watched_.push_back({.stat = *std::move(stat), .text = {}});
  }
  (void)peek.Unchanged();
  return peek;
}

bool ProcessPeek::Unchanged() {
  bool unchanged = true;
  for (Watched& watched : watched_) {
    std::array<char, 1024> text;
    const ssize_t size = ::pread(watched.stat.get(), text.data(), text.size(), 0);
    const std::string_view now(text.data(), size < 0 ? 0 : static_cast<std::size_t>(size));
    if (size > 0 && now == watched.text) continue;
    unchanged = false;
    watched.text = now;
  }
  return unchanged;
}

Result<ProcessTable> ProcessTable::OfNamespace(pid_t init) {
  const std::string root = "/proc/" + std::to_string(init) + "/root/proc";
  PALMSHED_TRY(sys::Directory list, OpenProc(root));
  PALMSHED_TRY(const ProcessStat first, ReadStat(list.fd(), 1));
  PALMSHED_TRY(sys::Directory host, OpenProc("/proc"));
  PALMSHED_TRY(const ProcessStat meant, ReadStat(host.fd(), init));
  // Another namespace's /proc there would show other processes.
  if (first.id.started != meant.id.started) {
    return std::unexpected(SysError("open", ENODEV, root));
  }
  return ProcessTable(std::move(list), first.id, false);
}

Result<ProcessTable> ProcessTable::Below(pid_t init) {
  PALMSHED_TRY(sys::Directory list, OpenProc("/proc"));
  PALMSHED_TRY(const ProcessStat first, ReadStat(list.fd(), init));
  return ProcessTable(std::move(list), first.id, true);
}

Result<pid_t> ProcessTable::NumberOf(pid_t process) const {
  if (whole_host_) return process;
  const std::string path = "/proc/" + std::to_string(process) + "/status";
  PALMSHED_TRY(const std::string status, sys::ReadFile(path));
  // One number for each namespace from that of the reader's /proc inwards (pid_namespaces(7)).
  const std::size_t at = status.find("\nNSpid:");
  if (at == std::string::npos) return std::unexpected(SysError("read", EBADMSG, path));
  const std::string line = status.substr(at + 1, status.find('\n', at + 1) - at - 1);
  const auto number = ParseAs<pid_t>(std::string_view(line).substr(line.rfind('\t') + 1));
  if (!number) return std::unexpected(SysError("read", EBADMSG, path));
  return *number;
}

Result<std::set<pid_t>> ProcessTable::Orphans() const {
  const std::string number = std::to_string(init_.pid);
  const std::string name = number + "/task/" + number + "/children";
  PALMSHED_TRY(const UniqueFd file, sys::OpenAt(list_.fd(), name, O_RDONLY));
  std::string content;
  std::array<std::byte, 4096> chunk;
  for (std::size_t size = 1; size != 0;) {
    PALMSHED_TRY(size, sys::Read(file.get(), chunk));
    content.append(reinterpret_cast<const char*>(chunk.data()), size);
  }
  std::set<pid_t> orphans;
  std::string_view rest = content;
  for (std::string_view word = NextWord(rest); !word.empty(); word = NextWord(rest)) {
    if (const auto orphan = ParseAs<pid_t>(word)) orphans.insert(*orphan);
  }
  return orphans;
}

Result<ProcessStat> ProcessTable::Stat(pid_t number) const { return ReadStat(list_.fd(), number); }

Result<std::vector<ProcessStat>> ProcessTable::Read() {
  std::map<pid_t, Seen> all;
  list_.Rewind();
  while (true) {
    PALMSHED_TRY(const auto entry, list_.Next());
    if (!entry) break;
    const auto number = ParseAs<pid_t>(entry->name);
    if (!number) continue;
    const auto known = foreign_.find(*number);
    if (known != foreign_.end() && known->second == entry->inode) {
      all[*number] = {.inode = entry->inode, .stat = {}};
      continue;
    }
    // Gone meanwhile; any other failure (no descriptor left) would hide somebody.
    auto stat = ReadStat(list_.fd(), *number);
    if (stat) {
      all[*number] = {.inode = entry->inode, .stat = *stat};
    } else if (stat.error().sys_errno != ENOENT && stat.error().sys_errno != ESRCH) {
      return std::unexpected(std::move(stat.error()));
    }
  }
  const auto init = all.find(init_.pid);
  if (init == all.end() || init->second.stat.id != init_ || init->second.stat.state == 'Z') {
    return std::unexpected(SysError("read", ESRCH, "/proc"));
  }
  return KeepBelow(all);
}

std::vector<ProcessStat> ProcessTable::KeepBelow(const std::map<pid_t, Seen>& all) {
  std::vector<ProcessStat> below{all.at(init_.pid).stat};
  std::map<pid_t, std::uint64_t> foreign;
  std::map<pid_t, Place> places{{init_.pid, Place::kBelow}, {0, Place::kElsewhere}};
  const auto place_of = [&](pid_t number) {
    std::vector<pid_t> way;
    auto place = places.find(number);
    while (place == places.end()) {
      const auto process = all.find(number);
      // The chain is broken where a parent has just ended: the next look will tell.
      if (process == all.end() || way.size() > all.size()) {
        place = places.emplace(number, Place::kUnknown).first;
      } else if (process->second.stat.id.pid == 0) {
        place = places.emplace(number, Place::kElsewhere).first;
      } else {
        way.push_back(number);
        number = process->second.stat.parent;
        place = places.find(number);
      }
    }
    for (const pid_t passed : way) places[passed] = place->second;
    return place->second;
  };
  for (const auto& [number, process] : all) {
    const Place place = whole_host_ ? place_of(number) : Place::kBelow;
    if (place == Place::kBelow && number != init_.pid) below.push_back(process.stat);
    if (place == Place::kElsewhere) foreign[number] = process.inode;
  }
  foreign_ = std::move(foreign);
  return below;
}

}  // namespace palmshed::kernel
