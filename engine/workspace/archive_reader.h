// Entries of an archive, one after another, whatever its format.
//
// The archive is hostile input, and libarchive works on it in the engine's own process. So it is
// given as little as possible: one format and at most one decompressor, chosen by the first bytes,
// none of them an external program, and no zip entry by a method that takes more than a window of
// 32 KiB. What the entries say is passed on unchecked: extraction.h decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "palmshed/error.h"
#include "palmshed/streams.h"

namespace palmshed::workspace {

enum class EntryKind : std::uint8_t { kFile, kDirectory, kSymlink, kHardLink, kOther };

struct ArchiveEntry {
  std::string name;  ///< As the archive has it, up to the first NUL.
  EntryKind kind{};
  std::string target{};  ///< kSymlink: what it says. kHardLink: the name of another entry.
  std::uint32_t mode = 0;
  timespec modified{};
  std::optional<std::uint64_t> size{};  ///< kFile: with its holes; absent when nobody knows yet.
  bool has_holes = false;
};

class ArchiveReader {
 public:
  /// A stretch of a file's content. What no stretch covers is a hole.
  struct Piece {
    std::uint64_t offset;
    std::span<const std::byte> bytes;  ///< Until the next call.
  };

  /// `source` is borrowed for the life of this object, and used by the calls of it. All errors are
  /// FS_ERROR (field "archive"), or those of the source.
  static Result<ArchiveReader> Open(ByteSource& source);
  ArchiveReader(ArchiveReader&&) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) = delete;
  ~ArchiveReader();

  /// The next entry; nullopt at the end. What was not read of the one before is skipped.
  Result<std::optional<ArchiveEntry>> Next();
  /// The next piece of the file that Next told of last, in ascending order; nullopt at its end.
  Result<std::optional<Piece>> NextPiece();

 private:
  class State;
  explicit ArchiveReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace palmshed::workspace
