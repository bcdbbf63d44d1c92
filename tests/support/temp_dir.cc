#include "support/temp_dir.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace palmshed::tests {

TempDir::TempDir(unsigned mode, const std::string& parent) {
  std::string name = parent + "/palmshed-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), mode) != 0) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp");
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::AddFile(std::string_view name, std::string_view content) const {
  const std::filesystem::path file = std::filesystem::path(path_) / name;
  for (std::filesystem::path at = file.parent_path(); at != path_; at = at.parent_path()) {
    std::filesystem::create_directories(at);
    std::filesystem::permissions(at, std::filesystem::perms(0755));
  }
  std::ofstream(file, std::ios::binary) << content;
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  return file;
}

std::string Slurp(const std::string& path) {
  if (::access(path.c_str(), R_OK) != 0) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  return SlurpIfThere(path);
}

std::string SlurpIfThere(const std::string& path) {
  std::string content;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char buffer[16384];
  for (ssize_t size = 0; (size = ::read(fd, buffer, sizeof buffer)) > 0;) {
    content.append(buffer, static_cast<std::size_t>(size));
  }
  if (fd >= 0) ::close(fd);
  return content;
}

}  // namespace palmshed::tests
