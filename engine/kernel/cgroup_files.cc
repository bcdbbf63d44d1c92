#include "kernel/cgroup_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <expected>
#include <optional>
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

constexpr std::size_t kMaxShortFile = 1024;  ///< cpu.stat of v2 has about 300 bytes.
constexpr int kMaxDepth = 32;  ///< Of groups below one that is removed; ours have one level.

/// nullopt: not a number, or one that does not fit.
std::optional<std::uint64_t> ParseNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (!rest.empty() && rest.front() != '\n' && rest.front() != ' ') return std::nullopt;
  return number;
}

Result<std::vector<std::string>> GroupsBelow(const std::string& directory) {
  PALMSHED_TRY(UniqueFd fd, sys::Open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  PALMSHED_TRY(sys::Directory listing, sys::Directory::Read(std::move(fd)));
  std::vector<std::string> below;
  while (true) {
    PALMSHED_TRY(auto entry, listing.Next());
    if (!entry) return below;
    if (entry->type == DT_DIR) below.push_back(directory + "/" + entry->name);
  }
}

Result<void> RemoveDownFrom(const std::string& directory, int depth) {
  if (depth == 0) return std::unexpected(SysError("rmdir", ELOOP, directory));
  auto removed = sys::UnlinkAt(AT_FDCWD, directory, AT_REMOVEDIR);
  if (removed || removed.error().sys_errno == ENOENT) return {};
  // Something runs in it, or there are groups below: both answer EBUSY. Their owners may be
  // removing them at this moment, so it is tried again though none are found.
  auto below = GroupsBelow(directory);
  if (!below && below.error().sys_errno == ENOENT) return {};
  if (!below) return std::unexpected(std::move(below.error()));
  for (const std::string& child : *below) PALMSHED_TRY_VOID(RemoveDownFrom(child, depth - 1));
  removed = sys::UnlinkAt(AT_FDCWD, directory, AT_REMOVEDIR);
  if (!removed && removed.error().sys_errno == ENOENT) return {};
  return removed;
}

}  // namespace

bool GroupFileExists(const std::string& path) {
  return sys::FstatAt(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW).has_value();
}

Result<void> WriteGroupFile(const std::string& path, std::string_view text) {
  // Truncating means nothing to these files; without it a test's plain file keeps its old end.
  PALMSHED_TRY(const UniqueFd fd, sys::Open(path, O_WRONLY | O_TRUNC));
  // One write is one command.
  auto written = sys::Write(fd.get(), std::as_bytes(std::span(text)));
  if (!written) return std::unexpected(SysError("write", written.error().sys_errno, path));
  return {};
}

Result<std::string> ReadGroupFileAgain(BorrowedFd file) {
  std::string text(kMaxShortFile, '\0');
  PALMSHED_TRY(const std::size_t size,
               sys::Pread(file, std::as_writable_bytes(std::span(text)), 0));
  text.resize(size);
  return text;
}

Result<std::uint64_t> ReadGroupNumber(const std::string& path) {
  return GroupFile(path).ReadNumber();
}

Result<BorrowedFd> GroupFile::Hold() {
  if (!open_.valid()) {
    PALMSHED_TRY(open_, sys::Open(path_, O_RDONLY));
  }
  return open_.get();
}

Result<std::string> GroupFile::Read() const {
  if (open_.valid()) {
    if (auto text = ReadGroupFileAgain(open_.get())) return text;  // ENODEV: its group is gone.
  }
  return sys::ReadFile(path_);
}

Result<std::uint64_t> GroupFile::ReadNumber() const {
  PALMSHED_TRY(const std::string text, Read());
  const auto number = ParseNumber(text);
  if (!number) return std::unexpected(SysError("read", EINVAL, path_));
  return *number;
}

Result<std::uint64_t> GroupFile::ReadKey(std::string_view key) const {
  PALMSHED_TRY(const std::string text, Read());
  return GroupKey(text, key);
}

std::uint64_t GroupKey(std::string_view text, std::string_view key) {
  for (const std::string_view line : Split(text, '\n')) {
    if (line.size() <= key.size() || !line.starts_with(key) || line[key.size()] != ' ') continue;
    return ParseNumber(line.substr(key.size() + 1)).value_or(0);
  }
  return 0;
}

Result<std::uint64_t> ReadGroupKey(const std::string& path, std::string_view key) {
  return GroupFile(path).ReadKey(key);
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool HasWord(std::string_view text, std::string_view word, char separator) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto words = Split(text, separator);
  return std::ranges::find(words, word) != words.end();
}

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

Result<void> RemoveEmptyGroups(const std::string& directory) {
  return RemoveDownFrom(directory, kMaxDepth);
}

}  // namespace palmshed::kernel
