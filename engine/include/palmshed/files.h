// The virtual file system of a sandbox. Every path is relative to the workspace and cannot leave
// it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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

}  // namespace v1
}  // namespace palmshed
