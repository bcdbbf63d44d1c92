// A user's processes together may have only so many descriptors on their way through sockets
// (unix(7)). Where others have used that up, what needs one says so, and works again afterwards.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/filtered_rung.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kWorks[] = "works";
constexpr char kNext[] = "next";
constexpr char kTooMany[] = "OVERLOADED 109";
static_assert(ETOOMANYREFS == 109);

/// The engine's own limit stays above what others have under way, the helpers' falls below it.
constexpr rlim_t kTheirs = 256;

pid_t ParentOf(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    constexpr std::string_view kParent = "PPid:";
    if (line.starts_with(kParent)) return std::stoi(line.substr(kParent.size()));
  }
  return 0;
}

bool IsBelowThisProcess(pid_t pid) {
  while (pid > 1 && pid != ::getpid()) pid = ParentOf(pid);
  return pid == ::getpid();
}

/// False when it is gone.
bool LowerLimit(pid_t pid) {
  rlimit limit{};
  bool done = ::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit) == 0;
  limit.rlim_cur = kTheirs;
  done = done && ::prlimit(pid, RLIMIT_NOFILE, &limit, nullptr) == 0;
  if (!done && errno != ESRCH) throw std::runtime_error("prlimit");
  return done;
}

void LimitHelpers() {
  int limited = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid == 0 || pid == ::getpid() || !IsBelowThisProcess(pid)) continue;
    limited += LowerLimit(pid) ? 1 : 0;
  }
  if (limited == 0) throw std::runtime_error("no helpers");
}

/// More than the helpers' limit, less than the engine's.
class UnderWay {
 public:
  UnderWay() {
    if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) {
      throw std::runtime_error("socketpair");
    }
    // No socket: one that waits in its own queue stays there until the kernel collects it, which it
    // does in its own time, and these are to be gone when the sockets are.
    sent_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (sent_ == -1) throw std::runtime_error("/dev/null");
    for (rlim_t sent = 0; sent <= kTheirs; sent += kInOne) Send();
  }
  ~UnderWay() {
    for (const int fd : {ends_[0], ends_[1], sent_}) (void)::close(fd);
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

 private:
  static constexpr std::size_t kInOne = 100;

  void Send() const {
    std::array<int, kInOne> fds{};
    fds.fill(sent_);
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
    char byte = 0;
    iovec part{.iov_base = &byte, .iov_len = 1};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
    if (::sendmsg(ends_[1], &message, 0) != 1) throw std::runtime_error("sendmsg");
  }

  std::array<int, 2> ends_{};
  int sent_ = -1;
};

template <class T>
std::string Outcome(const Result<T>& result) {
  if (result) return kWorks;
  const Error& error = result.error();
  return std::string(ToString(error.code)) + " " + std::to_string(error.sys_errno) + " " +
         error.message;
}

std::string Ran(Sandbox& sandbox, const ExecOptions& options) {
  const auto ran = sandbox.Run({"true"}, options);
  if (!ran || ran->ok()) return Outcome(ran);
  return std::string(ToString(ran->termination.cause)) + " " + ran->termination.stage;
}

/// Everything that takes a descriptor from a sandbox to its engine or to a program.
std::vector<std::string> AskAll(Engine& engine, Sandbox& sandbox) {
  std::vector<std::string> outcomes;
  // Again and again: what bears a program is made after the first, and used by the next.
  for (int again = 0; again < 3; ++again) {
    outcomes.push_back(Ran(sandbox, {}));
    outcomes.push_back(Ran(sandbox, {.cpu_time_limit = std::chrono::seconds(100)}));
    outcomes.push_back(Ran(sandbox, {.memory = Bytes{256U << 20}}));
    outcomes.push_back(Ran(sandbox, {.tty = TerminalSize{}}));
  }
  outcomes.push_back(Outcome(sandbox.WaitForPort(8080, std::chrono::milliseconds(0))));
  outcomes.push_back(Outcome(engine.CreateSandbox()));
  return outcomes;
}

/// What `AskAll` finds before, while and after others use up what there is.
std::vector<std::vector<std::string>> BeforeWhileAndAfter(const TempDir& root) {
  const ChildHost host([&](ChildHost& self) {
    Engine engine = Must(Engine::Create({.workspace_root = root.path()}));
    Sandbox sandbox = Must(engine.CreateSandbox());
    // The second is made by what makes all that follow.
    const Sandbox second = Must(engine.CreateSandbox());
    LimitHelpers();
    const auto tell = [&] {
      for (const std::string& outcome : AskAll(engine, sandbox)) self.Tell(outcome);
      self.Tell(kNext);
    };
    tell();
    {
      const UnderWay others;
      tell();
    }
    tell();
  });
  std::vector<std::vector<std::string>> all(1);
  for (std::string line; !(line = host.Hear()).empty();) {
    if (line == kNext) {
      all.emplace_back();
    } else {
      all.back().push_back(line);
    }
  }
  return all;
}

void ExpectClearErrorsAndNoHarm() {
  const TempDir root;
  const auto all = BeforeWhileAndAfter(root);
  ASSERT_THAT(all, SizeIs(4)) << ::testing::PrintToString(all);
  EXPECT_THAT(all[0], Contains(kWorks));
  EXPECT_THAT(all[1], Contains(StartsWith(kTooMany)));
  ASSERT_EQ(all[1].size(), all[0].size());
  for (std::size_t i = 0; i < all[0].size(); ++i) {
    EXPECT_THAT(all[1][i], AnyOf(all[0][i], StartsWith(kTooMany))) << i;
  }
  EXPECT_EQ(all[2], all[0]);
}

class DescriptorsUnderWay : public KernelTest {};

// Root may have any number. One test, since what is under way in one is so for the other.
TEST_F(DescriptorsUnderWay, OfOthersAreAClearErrorAndDoNoHarm) {
  AsOrdinaryUser([] { ExpectClearErrorsAndNoHarm(); });
  if (HasLandlockScopes()) OnFilteredRung([] { ExpectClearErrorsAndNoHarm(); });
}

}  // namespace
}  // namespace palmshed::tests
