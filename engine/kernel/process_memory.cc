#include "kernel/process_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {
namespace {

constexpr std::uint64_t kBlock = 512;  // Of st_blocks, stat(3type).

Result<std::string> ReadAt(BorrowedFd proc, const std::string& name) {
  PALMSHED_TRY(const UniqueFd file, sys::OpenAt(proc, name, O_RDONLY));
  std::string content;
  std::array<std::byte, 4096> chunk;
  while (true) {
    PALMSHED_TRY(const std::size_t size, sys::Read(file.get(), chunk));
    if (size == 0) return content;
    content.append(reinterpret_cast<const char*>(chunk.data()), size);
  }
}

std::string_view NextLine(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string_view NextWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

std::uint64_t Number(std::string_view word, int base = 10) {
  std::uint64_t value = 0;
  (void)std::from_chars(word.data(), word.data() + word.size(), value, base);
  return value;
}

// "Name:   123 kB" of status and smaps; nullopt where this kernel has no such line.
std::optional<std::uint64_t> Field(std::string_view text, std::string_view name) {
  const std::string start = "\n" + std::string(name) + ":";
  const std::size_t at = text.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + start.size());
  return Number(NextWord(rest)) * 1024;
}

Error Malformed(const std::string& name) { return SysError("read", EBADMSG, name); }

// A mapping's first line: "begin-end rwxp offset major:minor inode  name".
struct Mapping {
  ShmemFile file;
  std::string_view name;
};

std::optional<Mapping> ParseMapping(std::string_view line) {
  const std::string_view range = NextWord(line);
  if (range.find('-') == std::string_view::npos || range.ends_with(':')) return std::nullopt;
  (void)NextWord(line);
  (void)NextWord(line);
  const std::string_view device = NextWord(line);
  const std::size_t colon = device.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto major = static_cast<unsigned>(Number(device.substr(0, colon), 16));
  const auto minor = static_cast<unsigned>(Number(device.substr(colon + 1), 16));
  const std::uint64_t inode = Number(NextWord(line));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return Mapping{.file = {.device = makedev(major, minor), .inode = inode}, .name = line};
}

}  // namespace

std::optional<ResidentPages> ParseStatm(std::string_view text, std::uint64_t page_size) {
  (void)NextWord(text);
  const std::string_view resident_word = NextWord(text);
  const std::string_view shared_word = NextWord(text);
  if (shared_word.empty()) return std::nullopt;
  const std::uint64_t resident = Number(resident_word);
  const std::uint64_t shared = std::min(Number(shared_word), resident);
  return ResidentPages{.anonymous = (resident - shared) * page_size, .shared = shared * page_size};
}

Result<ResidentPages> ReadResident(BorrowedFd proc, const std::string& process) {
  PALMSHED_TRY(const UniqueFd file, sys::OpenAt(proc, process + "/statm", O_RDONLY));
  std::array<std::byte, 256> content;
  PALMSHED_TRY(const std::size_t size, sys::Read(file.get(), content));
  const auto page_size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto pages = ParseStatm({reinterpret_cast<const char*>(content.data()), size}, page_size);
  if (!pages) return std::unexpected(Malformed(process + "/statm"));
  return *pages;
}

Result<MemoryUse> ReadResidentUse(BorrowedFd proc, const std::string& process) {
  PALMSHED_TRY(const std::string status, ReadAt(proc, process + "/status"));
  // None of the lines: no memory any more.
  return MemoryUse{
      .anonymous = Field(status, "RssAnon").value_or(0) + Field(status, "VmSwap").value_or(0),
      .shmem = Field(status, "RssShmem").value_or(0)};
}

Result<MemoryUse> ReadProportionalUse(BorrowedFd proc, const std::string& process) {
  PALMSHED_TRY(const std::string rollup, ReadAt(proc, process + "/smaps_rollup"));
  const auto anonymous = Field(rollup, "Pss_Anon");
  const auto shmem = Field(rollup, "Pss_Shmem");
  if (!anonymous || !shmem) return std::unexpected(Malformed(process + "/smaps_rollup"));
  return MemoryUse{.anonymous = *anonymous + Field(rollup, "SwapPss").value_or(0), .shmem = *shmem};
}

std::uint64_t SumOtherShmem(std::string_view smaps, std::uint64_t device,
                            const std::map<ShmemFile, std::uint64_t>& files, bool sysv_counted) {
  std::uint64_t sum = 0;
  bool counts = false;
  while (!smaps.empty()) {
    std::string_view line = NextLine(smaps);
    if (const auto mapping = ParseMapping(line)) {
      counts = mapping->file.device == device && !files.contains(mapping->file) &&
               !(sysv_counted && mapping->name.starts_with("/SYSV"));
    } else if (counts && line.starts_with("Pss:")) {
      (void)NextWord(line);
      sum += Number(NextWord(line)) * 1024;
    }
  }
  return sum;
}

Result<std::uint64_t> ReadOtherShmem(BorrowedFd proc, const std::string& process,
                                     std::uint64_t device,
                                     const std::map<ShmemFile, std::uint64_t>& files,
                                     bool sysv_counted) {
  PALMSHED_TRY(const std::string smaps, ReadAt(proc, process + "/smaps"));
  return SumOtherShmem(smaps, device, files, sysv_counted);
}

Result<void> AddMemfds(BorrowedFd proc, const std::string& process, std::uint64_t device,
                       std::map<ShmemFile, std::uint64_t>& found) {
  PALMSHED_TRY(UniqueFd fd, sys::OpenAt(proc, process + "/fd", O_RDONLY | O_DIRECTORY));
  PALMSHED_TRY(sys::Directory list, sys::Directory::Read(std::move(fd)));
  while (true) {
    PALMSHED_TRY(const auto entry, list.Next());
    if (!entry) return {};
    const auto target = sys::ReadlinkAt(list.fd(), entry->name);
    if (!target || !target->starts_with("/memfd:")) continue;
    // Through the link, wherever it leads by now: what is not a memfd has another device.
    const auto status = sys::FstatAt(list.fd(), entry->name, 0);
    if (!status || status->st_dev != device) continue;
    found[{.device = status->st_dev, .inode = status->st_ino}] =
        static_cast<std::uint64_t>(status->st_blocks) * kBlock;
  }
}

Result<std::uint64_t> MemfdDevice() {
  PALMSHED_TRY(const UniqueFd memfd, sys::MemfdCreate("palmshed-device", false));
  PALMSHED_TRY(const auto status, sys::Fstat(memfd.get()));
  return status.st_dev;
}

Result<std::uint64_t> TmpfsUse(BorrowedFd directory) {
  struct statfs fs{};
  if (::fstatfs(directory, &fs) < 0) return std::unexpected(SysError("fstatfs", errno));
  return (fs.f_blocks - fs.f_bfree) * static_cast<std::uint64_t>(fs.f_bsize);
}

// key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap
std::uint64_t SumSysv(std::string_view text) {
  constexpr int kBefore = 14;
  std::uint64_t sum = 0;
  (void)NextLine(text);
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    for (int i = 0; i < kBefore; ++i) (void)NextWord(line);
    sum += Number(NextWord(line));
    sum += Number(NextWord(line));
  }
  return sum;
}

Result<std::uint64_t> SysvUse(BorrowedFd table) {
  if (::lseek(table, 0, SEEK_SET) < 0) return std::unexpected(SysError("lseek", errno));
  std::string content;
  std::array<std::byte, 4096> chunk;
  while (true) {
    PALMSHED_TRY(const std::size_t size, sys::Read(table, chunk));
    if (size == 0) return SumSysv(content);
    content.append(reinterpret_cast<const char*>(chunk.data()), size);
  }
}

}  // namespace palmshed::kernel
