// The files of a control group: short texts, read and written whole. For kernel/cgroup*.cc alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::kernel {

bool GroupFileExists(const std::string& path);
Result<void> WriteGroupFile(const std::string& path, std::string_view text);
/// What a file that is open has to say by now.
Result<std::string> ReadGroupFileAgain(BorrowedFd file);
/// A file that holds one number.
Result<std::uint64_t> ReadGroupNumber(const std::string& path);
/// The number behind `key` in a file of lines "key number"; 0 when there is no such line: older
/// kernels have fewer.
Result<std::uint64_t> ReadGroupKey(const std::string& path, std::string_view key);
std::uint64_t GroupKey(std::string_view text, std::string_view key);

/// A file that is read while somebody waits, and so held open beforehand; where it is not, because
/// no descriptor was to be had, each reading opens it.
class GroupFile {
 public:
  explicit GroupFile(std::string path) : path_(std::move(path)) {}
  Result<BorrowedFd> Hold();
  void Release() { open_.reset(); }
  Result<std::string> Read() const;
  Result<std::uint64_t> ReadNumber() const;                   ///< As ReadGroupNumber.
  Result<std::uint64_t> ReadKey(std::string_view key) const;  ///< As ReadGroupKey.

 private:
  const std::string path_;
  UniqueFd open_{};
};

std::vector<std::string_view> Split(std::string_view text, char separator);
/// Whether `word` is among words that `separator` parts.
bool HasWord(std::string_view text, std::string_view word, char separator = ' ');

/// The directory above; "/" has itself.
std::string ParentOf(const std::string& path);

/// Removes a group with those below it, if nothing runs in any. One that is gone already is fine.
Result<void> RemoveEmptyGroups(const std::string& directory);

}  // namespace palmshed::kernel
