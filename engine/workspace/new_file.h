// A file that appears complete or not at all.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "workspace/resolve.h"

namespace palmshed::workspace {

/// A new file under a temporary name in the directory where it is to appear. The destructor removes
/// it unless it was published.
class NewFile {
 public:
  /// `dir` is borrowed until the end of this object. Missing, the owner is left to the kernel.
  static Result<NewFile> Create(BorrowedFd dir, const Owner& owner);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  /// Open for writing.
  BorrowedFd fd() const { return fd_.get(); }
  /// Gives it its mode and its name, replacing a file or link of that name. The descriptor is
  /// closed first: a program cannot be executed while it is open for writing (ETXTBSY, execve(2)).
  /// A fork of the host program that happens to hold a copy of it delays that until its own exec.
  Result<void> Publish(const std::string& name, mode_t mode);

 private:
  NewFile(BorrowedFd dir, std::string temporary, UniqueFd fd);

  BorrowedFd dir_;
  std::string temporary_;  ///< Empty once it is gone.
  UniqueFd fd_;
};

/// Copies the whole content of a regular file, holes as holes, into an empty one. Ends at the size
/// that the source has now, however fast it grows.
Result<void> CopyContent(BorrowedFd from, BorrowedFd to);

}  // namespace palmshed::workspace
