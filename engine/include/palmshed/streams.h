// Streams of bytes that a caller hands to a call: archives come from one and go to one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "palmshed/error.h"
#include "palmshed/export.h"

namespace palmshed {
inline namespace v1 {

/// Where bytes come from. Belongs to the caller, and is used by one call at a time, on the thread
/// of that call. An error that it returns ends the call and is what the call returns.
class PALMSHED_EXPORT ByteSource {
 public:
  virtual ~ByteSource();
  /// Fills the front of `into` and returns how many bytes; 0 at the end. May block, and then holds
  /// up the call that reads.
  virtual Result<std::size_t> Read(std::span<std::byte> into) = 0;
  /// How many bytes there are, counted from where the source began; absent: it cannot go back.
  virtual std::optional<std::uint64_t> size() const;
  /// Makes `position`, counted from where the source began, the next byte that is read. Only of a
  /// source with a size.
  virtual Result<void> SeekTo(std::uint64_t position);
};

/// Where bytes go, under the rules of ByteSource.
class PALMSHED_EXPORT ByteSink {
 public:
  virtual ~ByteSink();
  /// Takes all of `bytes`. May block, and then holds up the call that writes.
  virtual Result<void> Write(std::span<const std::byte> bytes) = 0;
};

/// Reads a descriptor from where it stands: a file, a pipe, a socket. Borrowed, not closed. A file
/// can go back; its position afterwards is unspecified. One that is non-blocking is waited for.
class PALMSHED_EXPORT DescriptorSource final : public ByteSource {
 public:
  explicit DescriptorSource(int fd);  ///< Reads `fd`.
  Result<std::size_t> Read(std::span<std::byte> into) override;
  std::optional<std::uint64_t> size() const override;
  Result<void> SeekTo(std::uint64_t position) override;

 private:
  int fd_;
  std::uint64_t start_ = 0;
  std::optional<std::uint64_t> size_{};
};

/// Reads memory, borrowed until the source is gone.
class PALMSHED_EXPORT MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes);  ///< Reads `bytes`.
  Result<std::size_t> Read(std::span<std::byte> into) override;
  std::optional<std::uint64_t> size() const override;
  Result<void> SeekTo(std::uint64_t position) override;

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

/// Writes to a descriptor: a file, a pipe, a socket. Borrowed, not closed. A reader that has gone
/// is an error (EPIPE) and never a SIGPIPE. One that is non-blocking is waited for.
class PALMSHED_EXPORT DescriptorSink final : public ByteSink {
 public:
  explicit DescriptorSink(int fd);  ///< Writes to `fd`.
  Result<void> Write(std::span<const std::byte> bytes) override;

 private:
  int fd_;
};

/// Keeps everything in memory.
class PALMSHED_EXPORT MemorySink final : public ByteSink {
 public:
  Result<void> Write(std::span<const std::byte> bytes) override;
  /// What has come so far.
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_{};
};

}  // namespace v1
}  // namespace palmshed
