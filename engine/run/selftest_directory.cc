#include "run/selftest_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::run {
namespace {

constexpr std::string_view kPrefix = "palmshed-self-test-";

Result<std::string> Above() {
  std::error_code error;
  std::string path = std::filesystem::canonical("/tmp", error).string();
  if (error)
    return std::unexpected(SysError(ErrorCode::kFsError, "realpath", error.value(), "/tmp"));
  return path;
}

Result<void> Empty(BorrowedFd directory) {
  PALMSHED_TRY(UniqueFd fd, sys::OpenAt(directory, ".", O_RDONLY | O_DIRECTORY));
  PALMSHED_TRY(sys::Directory entries, sys::Directory::Read(std::move(fd)));
  while (true) {
    PALMSHED_TRY(const auto entry, entries.Next());
    if (!entry) return {};
    PALMSHED_TRY_VOID(sys::UnlinkAt(directory, entry->name));
  }
}

/// Nobody but its owner can put anything into it.
Result<void> RemoveIfLeft(BorrowedFd above, const std::string& name) {
  constexpr int kHow = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  PALMSHED_TRY(const UniqueFd directory, sys::OpenAt(above, name, kHow));
  PALMSHED_TRY(const struct stat st, sys::Fstat(directory.get()));
  if (st.st_uid != ::geteuid()) return {};
  PALMSHED_TRY_VOID(sys::Flock(directory.get(), LOCK_EX | LOCK_NB));
  PALMSHED_TRY_VOID(Empty(directory.get()));
  return sys::UnlinkAt(above, name, AT_REMOVEDIR);
}

/// What cannot be removed is another time's to remove.
Result<void> RemoveAllLeft(const std::string& above) {
  PALMSHED_TRY(const UniqueFd fd, sys::Open(above, O_RDONLY | O_DIRECTORY));
  PALMSHED_TRY(UniqueFd listed, sys::OpenAt(fd.get(), ".", O_RDONLY | O_DIRECTORY));
  PALMSHED_TRY(sys::Directory entries, sys::Directory::Read(std::move(listed)));
  while (true) {
    PALMSHED_TRY(const auto entry, entries.Next());
    if (!entry) return {};
    if (entry->name.starts_with(kPrefix)) (void)RemoveIfLeft(fd.get(), entry->name);
  }
}

}  // namespace

Result<std::optional<SelfTestDirectory>> SelfTestDirectory::TryCreate(const std::string& above) {
  std::string path = above + "/" + std::string(kPrefix) + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return std::unexpected(SysError(ErrorCode::kFsError, "mkdtemp", errno, above));
  }
  auto lock = sys::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!lock && lock.error().sys_errno == ENOENT) return std::nullopt;
  if (!lock) {
    (void)::rmdir(path.c_str());
    return std::unexpected(std::move(lock.error()));
  }
  SelfTestDirectory made(std::move(path), *std::move(lock));
  PALMSHED_TRY_VOID(sys::Flock(made.lock_.get(), LOCK_EX));
  PALMSHED_TRY(const struct stat st, sys::Fstat(made.lock_.get()));
  if (st.st_nlink == 0) return std::nullopt;
  // Only the sandbox, not permissions, may keep its program away.
  PALMSHED_TRY_VOID(sys::Fchmod(made.lock_.get(), 0755));
  return made;
}

Result<SelfTestDirectory> SelfTestDirectory::Create() {
  PALMSHED_TRY(const std::string above, Above());
  (void)RemoveAllLeft(above);  // Whether it may be listed is of no matter to this one.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    PALMSHED_TRY(auto made, TryCreate(above));
    if (made) return *std::move(made);
  }
  return std::unexpected(SysError(ErrorCode::kFsError, "flock", EBUSY, above));
}

SelfTestDirectory::~SelfTestDirectory() {
  if (!lock_.valid()) return;
  (void)Empty(lock_.get());
  (void)::rmdir(path_.c_str());
}

Result<void> SelfTestDirectory::AddFile(const std::string& file, mode_t mode) const {
  PALMSHED_TRY(const UniqueFd made,
               sys::OpenAt(lock_.get(), file, O_WRONLY | O_CREAT | O_EXCL, mode));
  return sys::Fchmod(made.get(), mode);
}

}  // namespace palmshed::run
