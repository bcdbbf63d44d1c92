// The sources and sinks that come with the library (palmshed/streams.h).
#include <poll.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <expected>
#include <optional>
#include <span>

#include "base/result.h"
#include "base/sys.h"
#include "base/sys_files.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/streams.h"

namespace palmshed {
namespace {

/// A write to a pipe that nobody reads raises SIGPIPE in the thread that writes (write(2)), and how
/// the host program handles that is its own affair: here it stays blocked, and what came meanwhile
/// is taken away again.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    (void)::sigemptyset(&pipe_);
    (void)::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending{};
    (void)::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    (void)::pthread_sigmask(SIG_BLOCK, &pipe_, &mask_);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe() {
    const timespec now{};
    if (!was_pending_) (void)::sigtimedwait(&pipe_, nullptr, &now);
    (void)::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t mask_{};
  bool was_pending_ = false;
};

void WaitWritable(BorrowedFd fd) {
  pollfd entry{.fd = fd, .events = POLLOUT, .revents = 0};
  (void)::poll(&entry, 1, -1);  // Whatever is wrong shows in the next write.
}

Error StreamError(Error cause) {
  if (cause.code != ErrorCode::kOverloaded) cause.code = ErrorCode::kFsError;
  return cause;
}

}  // namespace

ByteSource::~ByteSource() = default;
ByteSink::~ByteSink() = default;

std::optional<std::uint64_t> ByteSource::size() const { return std::nullopt; }

Result<void> ByteSource::SeekTo(std::uint64_t /*position*/) {
  return std::unexpected(StreamError(SysError("lseek", ESPIPE)));
}

DescriptorSource::DescriptorSource(int fd) : fd_(fd) {
  const auto st = sys::Fstat(fd);
  if (!st || !S_ISREG(st->st_mode)) return;
  const auto start = sys::Seek(fd, 0, SEEK_CUR);
  const auto end = static_cast<std::uint64_t>(st->st_size);
  if (!start || *start > end) return;
  start_ = *start;
  size_ = end - *start;
}

Result<std::size_t> DescriptorSource::Read(std::span<std::byte> into) {
  while (true) {
    auto size = sys::Read(fd_, into);
    if (size) return size;
    if (size.error().sys_errno != EAGAIN) return std::unexpected(StreamError(size.error()));
    PALMSHED_TRY_VOID(sys::WaitReadable(fd_, -1));
  }
}

std::optional<std::uint64_t> DescriptorSource::size() const { return size_; }

Result<void> DescriptorSource::SeekTo(std::uint64_t position) {
  auto moved = sys::Seek(fd_, start_ + position, SEEK_SET);
  if (!moved) return std::unexpected(StreamError(moved.error()));
  return {};
}

MemorySource::MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}

Result<std::size_t> MemorySource::Read(std::span<std::byte> into) {
  const std::size_t size = std::min(into.size(), bytes_.size() - position_);
  if (size > 0) std::memcpy(into.data(), bytes_.data() + position_, size);
  position_ += size;
  return size;
}

std::optional<std::uint64_t> MemorySource::size() const { return bytes_.size(); }

Result<void> MemorySource::SeekTo(std::uint64_t position) {
  position_ = std::min<std::uint64_t>(position, bytes_.size());
  return {};
}

DescriptorSink::DescriptorSink(int fd) : fd_(fd) {}

Result<void> DescriptorSink::Write(std::span<const std::byte> bytes) {
  const WithoutSigpipe guard;
  while (!bytes.empty()) {
    const auto size = sys::Write(fd_, bytes);
    if (size) {
      bytes = bytes.subspan(*size);
    } else if (size.error().sys_errno == EAGAIN) {
      WaitWritable(fd_);
    } else {
      return std::unexpected(StreamError(size.error()));
    }
  }
  return {};
}

Result<void> MemorySink::Write(std::span<const std::byte> bytes) {
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {};
}

}  // namespace palmshed
