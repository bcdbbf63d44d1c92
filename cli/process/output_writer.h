// From the sandboxed program's output to our own standard output and standard error, byte by byte.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "cli/process/wakeup.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {

/// The stream of ours that could not be written, and why.
struct OutputFailure {
  Stream stream{};
  int sys_errno = 0;
};

/// Write() runs on one thread of the engine and may wait there for a slow reader. It waits in
/// poll(2), never in write(2), so that Abandon() can end the wait; the descriptors' own flags are
/// left alone, because other processes share them.
class OutputWriter {
 public:
  static Result<OutputWriter> Create();

  /// Writes it all, or fails for good: later output of that stream is dropped.
  void Write(Stream stream, std::span<const std::byte> bytes);
  /// From now on output is dropped where it would have to wait for its reader. Any thread.
  void Abandon() const { abandoned_.Set(); }

  /// Readable once a stream has failed.
  int failed_fd() const { return failed_.fd(); }
  /// The first failure. To be asked when failed_fd() is readable or the execution has ended.
  std::optional<OutputFailure> failure() const { return failure_; }

 private:
  OutputWriter(Wakeup abandoned, Wakeup failed);

  bool WaitWritable(int fd) const;
  void Fail(Stream stream, int sys_errno);

  Wakeup abandoned_;
  Wakeup failed_;
  std::optional<OutputFailure> failure_{};  ///< Written before `failed_` is set, then constant.
  bool regular_[2]{};                       ///< Regular files never make a writer wait.
  bool plain_[2]{};                         ///< Does not know RWF_NOWAIT.
  bool broken_[2]{};
};

}  // namespace palmshed::cli
