// Writing a tar archive: ustar, with a pax header where something does not fit into that (POSIX
// pax, "pax Interchange Format"). Reading takes libarchive, for formats that others have written in
// all their variants; writing one takes little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/streams.h"

namespace palmshed::workspace {

enum class TarKind : char { kFile = '0', kSymlink = '2', kDirectory = '5' };

struct TarEntry {
  std::string name;  ///< Relative; any bytes but NUL.
  TarKind kind = TarKind::kFile;
  std::string target{};  ///< kSymlink
  std::uint32_t mode = 0;
  std::time_t modified = 0;
  std::uint64_t size = 0;  ///< kFile
};

/// Errors are those of the sink; after one, what was written is no archive.
class TarWriter {
 public:
  /// `sink` is borrowed for the life of this object.
  explicit TarWriter(ByteSink& sink) : sink_(sink) {}

  /// Begins an entry. It belongs to nobody in particular: uid and gid 0.
  Result<void> Add(const TarEntry& entry);
  /// The next bytes of the file that was added last; exactly its size in all.
  Result<void> Write(std::span<const std::byte> bytes);
  /// Writes the end of the archive, and what is still held back. Once, after the last entry.
  Result<void> Finish();

 private:
  Result<void> AddHeader(const TarEntry& entry, char kind, std::uint64_t size);
  Result<void> Put(std::string_view bytes);
  Result<void> PutPadding(std::uint64_t size);

  ByteSink& sink_;
  std::vector<std::byte> buffer_{};
  std::uint64_t left_ = 0;  ///< Of the file that was added last.
  std::uint64_t size_ = 0;  ///< All of it.
};

}  // namespace palmshed::workspace
