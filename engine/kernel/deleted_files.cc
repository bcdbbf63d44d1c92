#include "kernel/deleted_files.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"

namespace palmshed::kernel {
namespace {

using Show = std::function<void(const struct stat&)>;

std::optional<sys::Directory> ReadDirectory(BorrowedFd parent, const std::string& name) {
  auto fd = sys::OpenAt(parent, name, O_RDONLY | O_DIRECTORY);
  if (!fd) return std::nullopt;
  auto directory = sys::Directory::Read(std::move(*fd));
  if (!directory) return std::nullopt;
  return std::move(*directory);
}

std::vector<std::string> NamesIn(BorrowedFd parent, const std::string& name) {
  std::vector<std::string> names;
  auto directory = ReadDirectory(parent, name);
  while (directory) {
    auto entry = directory->Next();
    if (!entry || !*entry) break;
    names.push_back(std::move((*entry)->name));
  }
  return names;
}

/// Numbers apart by blanks, as in /proc/<pid>/task/<tid>/children.
void AddNumbers(std::string_view text, std::vector<pid_t>& numbers) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    pid_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error == std::errc()) numbers.push_back(number);
    at = next == at ? at + 1 : next;
  }
}

void ShowIfDeleted(BorrowedFd directory, const std::string& name, const Show& show) {
  // What a descriptor's link in /proc leads to is that very file, whatever its text says.
  const auto st = sys::FstatAt(directory, name, 0);
  if (st && S_ISREG(st->st_mode) && st->st_nlink == 0) show(*st);
}

void ShowOpen(BorrowedFd task, const Show& show) {
  auto descriptors = ReadDirectory(task, "fd");
  while (descriptors) {
    const auto entry = descriptors->Next();
    if (!entry || !*entry) return;
    ShowIfDeleted(descriptors->fd(), (*entry)->name, show);
  }
}

/// "55d0c0a00000-55d0c0a21000 rw-s 00000000 fe:00 1234   /path (deleted)" (proc(5)).
void ShowMapped(BorrowedFd process, const std::string& maps, const Show& show) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::optional<UniqueFd> files;
  std::string_view rest = maps;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.ends_with(kDeleted)) continue;
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(std::string(line).c_str(), "%lx-%lx", &begin, &end) != 2) continue;
    if (!files) {
      auto opened = sys::OpenAt(process, "map_files", O_PATH | O_DIRECTORY);
      if (!opened) return;
      files = std::move(*opened);
    }
    char name[64];
    (void)std::snprintf(name, sizeof name, "%lx-%lx", begin, end);
    ShowIfDeleted(files->get(), name, show);
  }
}

bool SharesDescriptors(pid_t process, pid_t thread) {
  return ::syscall(SYS_kcmp, process, thread, KCMP_FILES, 0, 0) == 0;
}

/// Adds the processes that `pid` has made to `below`.
void LookAt(BorrowedFd proc, pid_t pid, bool self, const Show& show, std::vector<pid_t>& below) {
  const std::string number = std::to_string(pid);
  const auto process = sys::OpenAt(proc, number, O_PATH | O_DIRECTORY);
  if (!process) return;  // It has ended.
  const auto tasks = sys::OpenAt(process->get(), "task", O_PATH | O_DIRECTORY);
  if (!tasks) return;
  const std::string path = "/proc/" + number;
  for (const std::string& thread : NamesIn(process->get(), "task")) {
    const auto children =
        sys::ReadFile(std::string(path).append("/task/").append(thread).append("/children"));
    if (children) AddNumbers(*children, below);
    if (!self) continue;
    std::vector<pid_t> tid;
    AddNumbers(thread, tid);
    const bool first = thread == number;
    if (!first && !tid.empty() && SharesDescriptors(pid, tid[0])) continue;
    const auto task = sys::OpenAt(tasks->get(), thread, O_PATH | O_DIRECTORY);
    if (task) ShowOpen(task->get(), show);
  }
  if (!self) return;
  if (const auto maps = sys::ReadFile(path + "/maps")) ShowMapped(process->get(), *maps, show);
}

}  // namespace

void ForEachDeletedFile(pid_t ancestor, const Show& show) {
  const auto proc = sys::Open("/proc", O_PATH | O_DIRECTORY);
  if (!proc) return;
  std::vector<pid_t> processes{ancestor};
  for (std::size_t i = 0; i < processes.size(); ++i) {
    std::vector<pid_t> below;
    LookAt(proc->get(), processes[i], i != 0, show, below);
    processes.insert(processes.end(), below.begin(), below.end());
  }
}

}  // namespace palmshed::kernel
