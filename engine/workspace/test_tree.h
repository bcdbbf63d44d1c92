// A directory tree for tests, and the plain ways to look at it: none of what is under test.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "workspace/remove_tree.h"

namespace palmshed::workspace {

/// A new directory that goes with the object.
class TestTree {
 public:
  TestTree() : TestTree(::testing::TempDir()) {}
  /// In memory where the host has such a place: for trees that are large.
  static TestTree InMemory() {
    return TestTree(::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : ::testing::TempDir());
  }
  TestTree(const TestTree&) = delete;
  TestTree& operator=(const TestTree&) = delete;
  ~TestTree() { (void)RemoveTree(AT_FDCWD, path_); }

  const std::string& path() const { return path_; }
  std::string At(std::string_view name) const { return path_ + "/" + std::string(name); }
  BorrowedFd fd() const { return fd_.get(); }
  UniqueFd Open() const { return UniqueFd(::open(path_.c_str(), O_PATH | O_CLOEXEC)); }

  void Write(std::string_view name, std::string_view content, mode_t mode = 0644) const {
    std::ofstream(At(name), std::ios::binary) << content;
    ASSERT_EQ(::chmod(At(name).c_str(), mode), 0);
  }
  void Mkdir(std::string_view name, mode_t mode = 0755) const {
    ASSERT_EQ(::mkdir(At(name).c_str(), 0700), 0) << name;
    ASSERT_EQ(::chmod(At(name).c_str(), mode), 0);
  }
  void Link(std::string_view target, std::string_view name) const {
    ASSERT_EQ(::symlink(std::string(target).c_str(), At(name).c_str()), 0) << name;
  }
  void HardLink(std::string_view name, std::string_view again) const {
    ASSERT_EQ(::link(At(name).c_str(), At(again).c_str()), 0) << again;
  }
  void Fifo(std::string_view name) const { ASSERT_EQ(::mkfifo(At(name).c_str(), 0666), 0); }

  std::string Read(std::string_view name) const {
    std::ifstream file(At(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  bool Has(std::string_view name) const {
    struct stat st{};
    return ::lstat(At(name).c_str(), &st) == 0;
  }
  struct stat Lstat(std::string_view name) const {
    struct stat st{};
    EXPECT_EQ(::lstat(At(name).c_str(), &st), 0) << name;
    return st;
  }
  mode_t Mode(std::string_view name) const { return Lstat(name).st_mode & 07777; }
  std::string Target(std::string_view name) const {
    std::array<char, 4096> target{};
    const ssize_t n = ::readlink(At(name).c_str(), target.data(), target.size());
    return n < 0 ? "" : std::string(target.data(), static_cast<std::size_t>(n));
  }
  std::set<std::string> Names(std::string_view name = ".") const {
    std::set<std::string> names;
    DIR* dir = ::opendir(At(name).c_str());
    if (dir == nullptr) return names;
    while (const dirent* entry = ::readdir(dir)) names.insert(entry->d_name);
    ::closedir(dir);
    names.erase(".");
    names.erase("..");
    return names;
  }

 private:
  explicit TestTree(const std::string& where) : path_(where + "palmshed-test-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
    fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }

  std::string path_;
  UniqueFd fd_;
};

/// Where tests run as root: an ordinary user for as long as it lives, who owns `tree` too.
class AsOrdinaryUser {
 public:
  explicit AsOrdinaryUser(const TestTree& tree) : was_root_(::geteuid() == 0) {
    if (!was_root_) return;
    EXPECT_EQ(::chown(tree.path().c_str(), kUid, kUid), 0);
    EXPECT_EQ(::seteuid(kUid), 0);
  }
  AsOrdinaryUser(const AsOrdinaryUser&) = delete;
  AsOrdinaryUser& operator=(const AsOrdinaryUser&) = delete;
  ~AsOrdinaryUser() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }

 private:
  static constexpr uid_t kUid = 54322;
  bool was_root_;
};

/// Text as the bytes that WriteFile takes.
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace palmshed::workspace
