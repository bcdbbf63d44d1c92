// A directory that goes with the object.
#pragma once

#include <string>
#include <string_view>

namespace palmshed::tests {

/// A fresh directory, open to nobody else unless `mode` says so.
class TempDir {
 public:
  explicit TempDir(unsigned mode = 0700, const std::string& parent = "/var/tmp");
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  /// Writes a file that everybody may read and returns its path.
  std::string AddFile(std::string_view name, std::string_view content) const;

 private:
  std::string path_;
};

/// The whole content of a host file; throws when there is none.
std::string Slurp(const std::string& path);

/// As above for a file of /proc, whose process may end meanwhile: then what was read so far.
std::string SlurpIfThere(const std::string& path);

}  // namespace palmshed::tests
