#include "plan/program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <ranges>
#include <string>
#include <vector>

#include "palmshed/error.h"

namespace palmshed::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Strings = std::vector<std::string>;

TEST(Argv, TheShellFormIsUnchanged) {
  EXPECT_THAT(*Argv({.command = " echo 'a' # b"}), ElementsAre("/bin/sh", "-c", " echo 'a' # b"));
  EXPECT_THAT(*Argv({.args = {"a", ""}}), ElementsAre("a", ""));
}

TEST(Argv, ALongCommandIsToldToBecomeAFile) {  // C057
  EXPECT_TRUE(Argv({.command = std::string(131071, ':')}));
  for (const std::size_t size : {131072U, 200000U, 2000000U}) {
    const Result<Strings> argv = Argv({.command = std::string(size, ':')});
    ASSERT_FALSE(argv) << size;
    EXPECT_EQ(argv.error().code, ErrorCode::kInvalidOptions);
    EXPECT_EQ(argv.error().field, "command");
    EXPECT_THAT(argv.error().message, HasSubstr("script file"));
  }
}

TEST(Candidates, AreThePathsInOrder) {
  EXPECT_THAT(*Candidates("ls", "/usr/bin:/bin"), ElementsAre("/usr/bin/ls", "/bin/ls"));
  EXPECT_THAT(*Candidates("ls", ":/bin::tools:"), ElementsAre("/bin/ls", "tools/ls"));
  EXPECT_THAT(*Candidates("./ls", "/bin"), ElementsAre("./ls"));
  EXPECT_THAT(*Candidates("/bin/ls", ""), ElementsAre("/bin/ls"));
}

TEST(Candidates, WithoutADirectoryTheKernelIsLeftToSayNotFound) {
  EXPECT_THAT(*Candidates("ls", ""), ElementsAre(""));
  EXPECT_THAT(*Candidates("ls", "::"), ElementsAre(""));
  EXPECT_EQ(execl("", "ls", nullptr), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST(Candidates, AreBounded) {
  std::string path = "/d";
  for (int i = 1; i < 1000; ++i) path += ":/d";
  EXPECT_EQ(Candidates("ls", path)->size(), 1000U);
  const Result<Strings> many = Candidates("ls", path + ":/d");
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().field, "env.PATH");
  EXPECT_THAT(*Candidates(std::string(256, 'x'), path), ElementsAre(std::string(256, 'x')));
}

TEST(CheckFits, OneStringIsBounded) {  // C057
  EXPECT_TRUE(CheckFits(Strings{"/bin/echo", std::string(131071, 'a')}, {}));
  const auto arg = CheckFits(Strings{"/bin/echo", std::string(200000, 'a')}, {});
  ASSERT_FALSE(arg);
  EXPECT_EQ(arg.error().field, "args[1]");
  EXPECT_TRUE(CheckFits(Strings{"a"}, Strings{"A=" + std::string(131069, 'a')}));
  const auto variable = CheckFits(Strings{"a"}, Strings{"B=", "A=" + std::string(131070, 'a')});
  ASSERT_FALSE(variable);
  EXPECT_EQ(variable.error().field, "env.A");
}

TEST(CheckFits, TheSumIsBounded) {  // C057
  const auto environment = [](std::size_t count) {
    Strings env;
    for (std::size_t i = 0; i < count; ++i) {
      env.push_back("V" + std::to_string(i) + "=" + std::string(10000, 'x'));
    }
    return env;
  };
  EXPECT_TRUE(CheckFits(Strings{"true"}, environment(100)));
  const auto big_env = CheckFits(Strings{"true"}, environment(300));
  ASSERT_FALSE(big_env);
  EXPECT_EQ(big_env.error().field, "env");
  EXPECT_TRUE(CheckFits(Strings(100000, "abc"), {}));
  const auto big_args = CheckFits(Strings(1000000, "abc"), {});
  ASSERT_FALSE(big_args);
  EXPECT_EQ(big_args.error().field, "args");
}

// Executes /bin/true with these arguments under the stack limit of a sandbox; its exit status, or
// 200 when execve failed.
int ExecuteTrue(const Strings& argv) {
  std::vector<char*> pointers;
  for (const std::string& arg : argv) pointers.push_back(const_cast<char*>(arg.c_str()));
  pointers.push_back(nullptr);
  char* const no_env[] = {nullptr};
  const pid_t child = fork();
  if (child == 0) {
    struct rlimit stack{};
    (void)getrlimit(RLIMIT_STACK, &stack);
    stack.rlim_cur = rlim_t{8} << 20;
    if (setrlimit(RLIMIT_STACK, &stack) != 0) _exit(201);
    execve("/bin/true", pointers.data(), no_env);
    _exit(errno == E2BIG ? 200 : 202);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);  // NOLINT(misc-include-cleaner): <sys/wait.h>
}

// What CheckFits accepts, execve(2) takes, up to the last byte; a little more and it does not.
TEST(CheckFits, AgreesWithTheKernel) {
  const auto fits = [](int count) {
    return CheckFits(Strings(static_cast<std::size_t>(count), "a"), {}).has_value();
  };
  const int most = *std::ranges::partition_point(std::views::iota(1, 1000000), fits) - 1;
  Strings argv(static_cast<std::size_t>(most), "a");
  EXPECT_EQ(ExecuteTrue(argv), 0);
  argv.resize(argv.size() + 5000, "a");
  EXPECT_EQ(ExecuteTrue(argv), 200);
}

}  // namespace
}  // namespace palmshed::plan
