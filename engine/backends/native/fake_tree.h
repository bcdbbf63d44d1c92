// For tests: a tree of files in a directory of its own, removed with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace palmshed::backends::native {

class FakeTree {
 public:
  FakeTree() {
    std::string name =
        (std::filesystem::canonical(std::filesystem::temp_directory_path()) / "tree-XXXXXX")
            .string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name;
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  const std::string& root() const { return root_; }
  /// The whole path of one below the root, which begins with /.
  std::string At(const std::string& path) const { return root_ + path; }

  std::string Directory(const std::string& path) const {
    std::filesystem::create_directories(At(path));
    return At(path);
  }

  std::string File(const std::string& path, const std::string& content = "x") const {
    std::filesystem::create_directories(std::filesystem::path(At(path)).parent_path());
    std::ofstream(At(path)) << content;
    return At(path);
  }

  /// `target` is taken as it is.
  std::string Link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(At(path)).parent_path());
    std::filesystem::create_symlink(target, At(path));
    return At(path);
  }

 private:
  std::string root_;
};

}  // namespace palmshed::backends::native
