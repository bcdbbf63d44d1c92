#include "kernel/landlock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "kernel/filter_test_support.h"
#include "kernel/landlock_test_support.h"

namespace palmshed::kernel {
namespace {

constexpr int kBroken = 255;

TEST(RightsOfLandlock, GrowWithTheVersion) {
  EXPECT_EQ(RightsOfLandlock(0), LandlockRights{});
  EXPECT_EQ(RightsOfLandlock(1), (LandlockRights{.fs = 0x1fff}));
  EXPECT_EQ(RightsOfLandlock(2), (LandlockRights{.fs = 0x3fff}));
  EXPECT_EQ(RightsOfLandlock(3), (LandlockRights{.fs = 0x7fff}));
  EXPECT_EQ(RightsOfLandlock(4), (LandlockRights{.fs = 0x7fff, .net = 3}));
  EXPECT_EQ(RightsOfLandlock(5), (LandlockRights{.fs = 0xffff, .net = 3}));
  EXPECT_EQ(RightsOfLandlock(6), (LandlockRights{.fs = 0xffff, .net = 3, .scoped = 3}));
  EXPECT_EQ(RightsOfLandlock(7), RightsOfLandlock(6));
  EXPECT_EQ(RightsOfLandlock(99), RightsOfLandlock(6));
}

class LandlockInKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    abi_ = LandlockAbi();
    if (abi_ == 0) GTEST_SKIP() << "no Landlock on this kernel";
    ASSERT_NE(mkdtemp(root_), nullptr);  // NOLINT(misc-include-cleaner): cstdlib has it
    for (const char* name : {"a", "b", "closed"}) std::filesystem::create_directory(At(name));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string At(const std::string& name) const { return std::string(root_) + "/" + name; }

  // errno of `call` (0: it succeeded) without and with everything but a and b closed.
  static int Plain(const std::function<long()>& call) {
    return InForkedProcess([&] { return call() < 0 ? errno : 0; });
  }
  int Confined(const std::function<long()>& call) const {
    const LandlockRights rights = RightsOfLandlock(abi_);
    return InForkedProcess([&] {
      const LandlockRights handled{.fs = rights.fs, .scoped = rights.scoped};
      if (!RestrictSelf(handled, {{At("a"), rights.fs}, {At("b"), rights.fs}})) return kBroken;
      return call() < 0 ? errno : 0;
    });
  }

  int abi_ = 0;
  char root_[32] = "/tmp/palmshed-test-XXXXXX";
};

TEST_F(LandlockInKernel, TakesEveryRightOfItsVersion) {
  EXPECT_EQ(InForkedProcess([&] {
              const LandlockRights all = RightsOfLandlock(abi_);
              return RestrictSelf(all, {{"/", all.fs}}) ? 0 : errno;
            }),
            0);
}

TEST_F(LandlockInKernel, RefusesMoreThanFileRightsOnAFile) {
  const auto rule_on_device = [&](std::uint64_t access) {
    return InForkedProcess(
        [&] { return RestrictSelf(RightsOfLandlock(abi_), {{"/dev/null", access}}) ? 0 : errno; });
  };
  const std::uint64_t all = RightsOfLandlock(abi_).fs;
  EXPECT_EQ(rule_on_device(landlock::kFileRights & all), 0);
  EXPECT_EQ(rule_on_device(landlock::kReadDir), EINVAL);
}

TEST_F(LandlockInKernel, ClosesWhatNoRuleOpens) {
  const auto create_in = [&](const char* directory) {
    const std::string path = At(directory) + "/file";
    return [path] { return open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600); };
  };
  EXPECT_EQ(Plain(create_in("closed")), 0);
  EXPECT_EQ(Confined(create_in("closed")), EACCES);
  EXPECT_EQ(Confined(create_in("a")), 0);
}

TEST_F(LandlockInKernel, LetsFilesMoveBetweenOpenDirectories) {  // C086
  if (abi_ < 2) GTEST_SKIP() << "no right to refer before version 2";
  const auto move = [&] {
    const int fd = open(At("a/f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : std::rename(At("a/f").c_str(), At("b/f").c_str());
  };
  EXPECT_EQ(Confined(move), 0);
  const auto move_out = [&] { return std::rename(At("b/f").c_str(), At("closed/f").c_str()); };
  EXPECT_NE(Confined(move_out), 0);
  EXPECT_EQ(Plain(move_out), 0);
}

TEST_F(LandlockInKernel, ScopesAbstractSocketsAndSignals) {
  if (abi_ < 6) GTEST_SKIP() << "no scopes before version 6";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                                   "palmshed-test-%d", getpid());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                           static_cast<std::size_t>(length));
  const auto* peer = reinterpret_cast<const sockaddr*>(&address);
  const int host = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(host, peer, size), 0);
  const auto reach = [&] { return connect(socket(AF_UNIX, SOCK_DGRAM, 0), peer, size); };
  EXPECT_EQ(Plain(reach), 0);
  EXPECT_EQ(Confined(reach), EPERM);
  const pid_t outside = getpid();
  const auto signal_outside = [=] { return kill(outside, 0); };
  EXPECT_EQ(Plain(signal_outside), 0);
  EXPECT_EQ(Confined(signal_outside), EPERM);
  close(host);
}

}  // namespace
}  // namespace palmshed::kernel
