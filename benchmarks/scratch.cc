#include "benchmarks/scratch.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "benchmarks/die.h"

namespace palmshed::benchmarks {
namespace {

/// The one directory of this process, in which all others are.
class Top {
 public:
  Top() {
    std::error_code error;
    path_ = (std::filesystem::temp_directory_path(error) / "palmshed-benchmark-XXXXXX").string();
    if (error) Die("no directory for temporary files: " + error.message());
    if (::mkdtemp(path_.data()) == nullptr) DieErrno("mkdtemp");
  }
  ~Top() {
    std::error_code ignored;  // Nobody could do anything about it.
    std::filesystem::remove_all(path_, ignored);
  }
  Top(const Top&) = delete;
  Top& operator=(const Top&) = delete;

  std::string Next() {
    std::string path = path_ + "/" + std::to_string(++count_);
    if (::mkdir(path.c_str(), 0700) != 0) DieErrno("mkdir");
    return path;
  }

 private:
  std::string path_;
  int count_ = 0;
};

}  // namespace

std::string ScratchDirectory() {
  static Top top;
  return top.Next();
}

}  // namespace palmshed::benchmarks
