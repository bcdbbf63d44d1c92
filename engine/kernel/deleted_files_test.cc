#include "kernel/deleted_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <string>

namespace palmshed::kernel {
namespace {

/// A process, its child and a deleted file; `hold` runs in the child and keeps what it has.
class Holder {
 public:
  using Hold = std::function<void(int file)>;

  explicit Holder(const Hold& hold) {
    std::string name = ::testing::TempDir() + "palmshed-deleted-XXXXXX";
    const int file = ::mkstemp(name.data());  // NOLINT(misc-include-cleaner): <cstdlib>
    std::array<char, 8192> content{};
    EXPECT_EQ(::write(file, content.data(), content.size()), 8192);
    struct stat st{};
    ::fstat(file, &st);
    inode_ = st.st_ino;
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    parent_ = ::fork();
    if (parent_ == 0) Parent(hold, file, ready[1]);
    ::close(file);
    ::unlink(name.c_str());
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Holder() {
    ::kill(-parent_, SIGKILL);
    ::waitpid(parent_, nullptr, 0);
  }

  bool IsSeen() const {
    bool seen = false;
    ForEachDeletedFile(parent_, [&](const struct stat& st) { seen |= st.st_ino == inode_; });
    return seen;
  }

 private:
  [[noreturn]] static void Parent(const Hold& hold, int file, int ready) {
    ::setpgid(0, 0);
    if (::fork() == 0) {
      hold(file);
      (void)!::write(ready, "x", 1);
      for (;;) ::pause();
    }
    ::close(file);
    for (;;) ::pause();
  }

  pid_t parent_ = -1;
  ino_t inode_ = 0;
};

TEST(DeletedFiles, OpenOnesAreSeen) {
  EXPECT_TRUE(Holder([](int) {}).IsSeen());
}

TEST(DeletedFiles, ClosedOnesAreGone) {
  EXPECT_FALSE(Holder([](int file) { ::close(file); }).IsSeen());
}

TEST(DeletedFiles, MappedOnesAreSeenByRoot) {
  const Holder holder([](int file) {
    if (::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED) ::_exit(1);
    ::close(file);
  });
  EXPECT_EQ(holder.IsSeen(), ::geteuid() == 0);
}

TEST(DeletedFiles, ThoseOfAThreadWithDescriptorsOfItsOwnAreSeen) {
  const Holder holder([](int file) {
    static std::array<char, std::size_t{64} * 1024> stack;
    static int closed[2];
    (void)!::pipe(closed);
    constexpr int kOwnDescriptors = CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD;
    ::clone(
        [](void*) {
          (void)!::write(closed[1], "x", 1);
          for (;;) ::pause();
          return 0;
        },
        stack.data() + stack.size(), kOwnDescriptors, nullptr);
    char byte = 0;
    (void)!::read(closed[0], &byte, 1);
    ::close(file);
  });
  EXPECT_TRUE(holder.IsSeen());
}

}  // namespace
}  // namespace palmshed::kernel
