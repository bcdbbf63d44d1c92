// Where the self-tests have files of the host.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::run {

/// A directory below /tmp that every user of the host may enter; its path has no links. It goes
/// with the object, and the files in it. What is left where the process is killed goes when the
/// same user makes another: a lock shows whose maker is alive (flock(2)).
class SelfTestDirectory {
 public:
  /// Errors: FS_ERROR.
  static Result<SelfTestDirectory> Create();
  ~SelfTestDirectory();
  SelfTestDirectory(SelfTestDirectory&& other) noexcept = default;
  SelfTestDirectory& operator=(SelfTestDirectory&&) noexcept = delete;
  SelfTestDirectory(const SelfTestDirectory&) = delete;
  SelfTestDirectory& operator=(const SelfTestDirectory&) = delete;

  std::string PathOf(const std::string& file) const { return path_ + "/" + file; }
  /// Makes an empty file, whatever the umask.
  Result<void> AddFile(const std::string& file, mode_t mode) const;

 private:
  SelfTestDirectory(std::string path, UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  /// Nothing: a collector was there first.
  static Result<std::optional<SelfTestDirectory>> TryCreate(const std::string& above);

  std::string path_;
  UniqueFd lock_;  ///< The directory itself.
};

}  // namespace palmshed::run
