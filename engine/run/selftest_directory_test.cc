#include "run/selftest_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

namespace palmshed::run {
namespace {

namespace fs = std::filesystem;

std::string MakeLeft() {
  std::string path = "/tmp/palmshed-self-test-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) throw std::system_error(errno, std::generic_category());
  return path;
}

mode_t ModeOf(const std::string& path) {
  struct stat st{};
  EXPECT_EQ(::stat(path.c_str(), &st), 0) << path;
  return st.st_mode & 07777;
}

TEST(SelfTestDirectory, IsOpenToEverybodyAndGoesWithWhatIsInIt) {
  std::string path;
  {
    const mode_t before = ::umask(077);
    const auto made = SelfTestDirectory::Create();
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->AddFile("file", 0666));
    ::umask(before);
    path = made->PathOf("");
    EXPECT_EQ(ModeOf(path), 0755U);
    EXPECT_EQ(ModeOf(made->PathOf("file")), 0666U);
    EXPECT_FALSE(made->AddFile("file", 0666));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(SelfTestDirectory, RemovesWhatTheKilledHaveLeftAndNothingOfTheLiving) {
  const auto living = SelfTestDirectory::Create();
  ASSERT_TRUE(living);
  ASSERT_TRUE(living->AddFile("file", 0644));
  const std::string left = MakeLeft();
  std::ofstream(left + "/file") << "x";
  const auto next = SelfTestDirectory::Create();
  ASSERT_TRUE(next);
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(living->PathOf("file")));
}

TEST(SelfTestDirectory, LeavesAloneWhatItDidNotMake) {
  const std::string target = "/tmp/palmshed-self-tested-" + std::to_string(::getpid());
  const std::string link = "/tmp/palmshed-self-test-" + std::to_string(::getpid());
  fs::create_directory(target);
  std::ofstream(target + "/file") << "x";
  fs::create_directory_symlink(target, link);
  std::optional<std::string> of_another;
  if (::geteuid() == 0) {
    of_another = MakeLeft();
    ASSERT_EQ(::chown(of_another->c_str(), 1, 1), 0);
  }
  EXPECT_TRUE(SelfTestDirectory::Create());
  EXPECT_TRUE(fs::exists(target + "/file"));
  EXPECT_TRUE(fs::is_symlink(link));
  if (of_another) {
    EXPECT_TRUE(fs::exists(*of_another));
    fs::remove(*of_another);
  }
  fs::remove(link);
  fs::remove_all(target);
}

}  // namespace
}  // namespace palmshed::run
