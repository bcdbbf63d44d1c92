// The virtual file system of a sandbox. Every path is relative to the workspace and cannot leave
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "palmshed/units.h"

namespace palmshed {
inline namespace v1 {

/// What kind of object a path names. Links are never followed for this.
enum class FileType : std::uint8_t {
  kFile,       ///< A regular file.
  kDirectory,  ///< A directory.
  kSymlink,    ///< A symbolic link, whatever it points at.
  kOther,      ///< A FIFO, a socket or a device.
};

/// Facts about one file.
struct FileStat {
  FileType type{};                                   ///< Kind of object.
  Bytes size{};                                      ///< Apparent size.
  std::uint32_t mode = 0;                            ///< Permission bits (07777).
  std::chrono::system_clock::time_point modified{};  ///< Last change of content.
};

/// One name in a directory.
struct DirEntry {
  std::string name{};  ///< A single component; any bytes but '/' and NUL.
  FileStat stat{};     ///< Facts about it.
};

/// How far one archive may go; zero: no limit. Who meets one gets FS_ERROR, with its field.
struct ArchiveLimits {
  std::uint64_t max_entries = 100'000;  ///< Names in it, of whatever kind. "maxEntries"
  /// Sum of the files' sizes, holes included. "maxBytes"
  Bytes max_bytes{std::uint64_t{10} << 30};
  Millis timeout = std::chrono::minutes(10);  ///< Looked at between reads and writes. "timeout"
};

/// What went up or down.
struct ArchiveSummary {
  std::uint64_t entries = 0;  ///< Files, directories and links.
  Bytes bytes{};              ///< Sum of the files' sizes.
  /// FIFOs, sockets and devices, which do not come down.
  std::uint64_t skipped = 0;
  /// Their paths in the archive, the first hundred of them.
  std::vector<std::string> skipped_paths{};
};

}  // namespace v1
}  // namespace palmshed
