#include "backends/native/view.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <vector>

#include "backends/native/fake_tree.h"
#include "backends/native/runtimes.h"
#include "child/wire.h"
#include "kernel/filter_test_support.h"
#include "kernel/landlock.h"
#include "kernel/landlock_test_support.h"
#include "palmshed/options.h"

namespace palmshed::backends::native {
namespace {

namespace landlock = kernel::landlock;
using child::ViewOp;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint32_t kReadOnlyBind = child::kViewRecursive;
constexpr std::uint32_t kDevice = child::kViewDevice | child::kViewWritable;

const ViewItem* Find(const View& view, const std::string& path) {
  const auto found = std::ranges::find(view.items, path, &ViewItem::a);
  return found == view.items.end() ? nullptr : &*found;
}

std::uint64_t AccessOf(const View& view, const std::string& path) {
  const auto found = std::ranges::find(view.rules, path, &LandlockRulePlan::path);
  return found == view.rules.end() ? 0 : found->access;
}

// A merged host with secrets in all places that a sandbox must not see.
class ViewTest : public ::testing::Test {
 protected:
  ViewTest() {
    host_.Directory("/usr/bin");
    for (const char* name : {"bin", "sbin", "lib"}) {
      host_.Link("/" + std::string(name), "usr/" + std::string(name));
    }
    for (const char* secret :
         {"/root/.ssh/id", "/home/user/.netrc", "/var/lib/db", "/run/docker.sock", "/srv/data",
          "/opt/app/key", "/mnt/disk", "/etc/shadow"}) {
      host_.File(secret);
    }
    for (const char* name : {"/tmp/x", "/proc/1", "/sys/fs", "/dev/sda", "/workspace/old"}) {
      host_.Directory(name);
    }
    request_.host_root = host_.root();
    request_.landlock_abi = 6;
  }

  FakeTree host_;
  ViewRequest request_;
};

TEST_F(ViewTest, PrivateViewTakesOnlyTheSystemFromTheHost) {
  host_.File("/etc/ld.so.cache", std::string(5000, 'x'));
  const View view = BuildPrivateView(request_);
  std::vector<std::string> sources;
  for (const ViewItem& item : view.items) {
    if (item.op == ViewOp::kBind) sources.push_back(item.b.substr(host_.root().size()));
  }
  EXPECT_THAT(sources, ::testing::UnorderedElementsAre("/usr", "/etc/ld.so.cache", "/dev/null",
                                                       "/dev/zero", "/dev/full", "/dev/random",
                                                       "/dev/urandom", "/dev/tty"));
  EXPECT_EQ(Find(view, "/usr")->flags, kReadOnlyBind);
  EXPECT_EQ(Find(view, "/etc/ld.so.cache")->flags & child::kViewWritable, 0U);
  EXPECT_EQ(Find(view, "/dev/null")->flags, kDevice);
  EXPECT_EQ(Find(view, "/home"), nullptr);
  EXPECT_EQ(Find(view, "/sys"), nullptr);
}

TEST_F(ViewTest, SmallPublicFilesAreCopied) {
  host_.File("/etc/services", "ssh 22/tcp\n");
  host_.File("/etc/protocols", "tcp 6 TCP\n");
  std::filesystem::permissions(host_.root() + "/etc/protocols", std::filesystem::perms(0600));
  const View view = BuildPrivateView(request_);
  EXPECT_EQ(Find(view, "/etc/services")->op, ViewOp::kFile);
  EXPECT_EQ(Find(view, "/etc/services")->b, "ssh 22/tcp\n");
  // What others may not read on the host is not copied for them: the mount keeps its permissions.
  EXPECT_EQ(Find(view, "/etc/protocols")->op, ViewOp::kBind);
}

TEST_F(ViewTest, PrivateViewHasItsOwnDirectories) {
  const View view = BuildPrivateView(request_);
  EXPECT_EQ(Find(view, "/proc")->op, ViewOp::kProc);
  EXPECT_EQ(Find(view, "/tmp")->mode, 01777U);
  EXPECT_EQ(Find(view, "/dev/shm")->mode, 01777U);
  for (const char* path : {"/workspace", "/dev/pts", "/run", "/tmp", "/dev/shm"}) {
    EXPECT_EQ(Find(view, path)->op, ViewOp::kDirectory) << path;
  }
  EXPECT_EQ(Find(view, "/dev/fd")->b, "/proc/self/fd");  // C060
  EXPECT_EQ(Find(view, "/dev/ptmx")->b, "pts/ptmx");
  EXPECT_EQ(Find(view, "/var/tmp")->b, "/tmp");
}

TEST_F(ViewTest, ParentsComeBeforeWhatTheyHold) {
  request_.runtimes =
      KnownRuntimes({.binds = {{"/home/user/.nvm/v20/bin"}, {"/home/user/.nvm/v20/lib"}},
                     .links = {{"/home/user/.nvm/v20/lib64", "lib"}},
                     .files = {{"/home/user/.rustup/settings.toml", "x"}}});
  for (const View& view : {BuildPrivateView(request_), BuildHostView(request_)}) {
    std::vector<std::string> made = {"/"};
    for (const ViewItem& item : view.items) {
      const std::string parent = std::filesystem::path(item.a).parent_path();
      EXPECT_THAT(made, Contains(parent)) << item.a;
      EXPECT_THAT(made, Not(Contains(item.a)));
      made.push_back(item.a);
    }
  }
}

TEST_F(ViewTest, ProgressTellsEveryItemOnceAndInOrder) {
  request_.runtimes = KnownRuntimes({.binds = {{"/opt/go/bin"}}});
  for (const auto& build : {BuildPrivateView, BuildHostView}) {
    std::vector<ViewItem> told;
    const View view = build(request_, [&](std::span<const ViewItem> items) {
      told.insert(told.end(), items.begin(), items.end());
    });
    EXPECT_EQ(told, view.items);
  }
}

// What takes longest to find out comes last.
TEST_F(ViewTest, SystemIsKnownBeforeTheRuntimesAre) {
  std::vector<std::string> before;
  std::promise<Runtimes> runtimes;
  request_.runtimes = runtimes.get_future();
  (void)BuildPrivateView(request_, [&](std::span<const ViewItem> items) {
    if (!before.empty()) return;
    for (const ViewItem& item : items) before.push_back(item.a);
    runtimes.set_value({});
  });
  EXPECT_THAT(before, Contains("/usr"));
  EXPECT_THAT(before, Contains("/dev/null"));
}

TEST_F(ViewTest, RuntimesAreReadOnlyAndInTheirPlace) {
  request_.runtimes = KnownRuntimes({.binds = {{"/opt/go/bin"}, {"/opt/go/VERSION", false}},
                                     .files = {{"/opt/go/made", "content"}}});
  const View view = BuildPrivateView(request_);
  EXPECT_EQ(Find(view, "/opt/go/bin")->flags, child::kViewRecursive | child::kViewOptional);
  EXPECT_EQ(Find(view, "/opt/go/made")->b, "content");
  EXPECT_EQ(Find(view, "/opt")->op, ViewOp::kDirectory);
  EXPECT_EQ(AccessOf(view, "/opt/go/bin"),
            landlock::kReadFile | landlock::kReadDir | landlock::kExecute);
  EXPECT_EQ(AccessOf(view, "/opt/go/VERSION"), landlock::kReadFile | landlock::kExecute);
  EXPECT_EQ(AccessOf(view, "/opt"), 0U);
}

TEST_F(ViewTest, UnmergedHostsBindTheirSystemDirectories) {
  const FakeTree old;
  old.Directory("/usr");
  old.Directory("/bin");
  old.Directory("/lib");
  old.Link("/lib64", "lib");
  old.Link("/sbin", "/home/user/sbin");
  request_.host_root = old.root();
  const View view = BuildPrivateView(request_);
  EXPECT_EQ(Find(view, "/bin")->flags, kReadOnlyBind);
  EXPECT_NE(AccessOf(view, "/bin"), 0U);
  EXPECT_EQ(Find(view, "/lib64")->b, "lib");
  EXPECT_EQ(Find(view, "/sbin"), nullptr);
}

TEST_F(ViewTest, RulesSayTheSameAsTheMounts) {
  const View view = BuildPrivateView(request_);
  constexpr std::uint64_t kAll = 0xffff;
  EXPECT_EQ(AccessOf(view, "/workspace"), kAll);
  EXPECT_EQ(AccessOf(view, "/tmp"), kAll);
  EXPECT_EQ(AccessOf(view, "/dev/shm"), kAll);
  EXPECT_EQ(AccessOf(view, "/etc"), landlock::kReadFile | landlock::kReadDir);
  EXPECT_EQ(AccessOf(view, "/"), landlock::kReadDir);
  EXPECT_EQ(AccessOf(view, "/proc") & landlock::kExecute, 0U);
  EXPECT_EQ(view.handled, (kernel::LandlockRights{.fs = kAll, .net = 0, .scoped = 3}));
}

TEST_F(ViewTest, RulesNeedNoMoreThanTheKernelKnows) {
  for (int abi = 0; abi <= 7; ++abi) {
    request_.landlock_abi = abi;
    for (const View& view : {BuildPrivateView(request_), BuildHostView(request_),
                             BuildFilteredView(request_, "/w", "/t")}) {
      EXPECT_THAT(view.rules, abi == 0 ? ::testing::Matcher<decltype(view.rules)>(IsEmpty())
                                       : ::testing::Matcher<decltype(view.rules)>(Not(IsEmpty())));
      for (const LandlockRulePlan& rule : view.rules) {
        EXPECT_EQ(rule.access & ~view.handled.fs, 0U) << rule.path;
      }
    }
  }
}

TEST_F(ViewTest, HostViewShowsTheHostButNotItsSocketsAndKernel) {
  const View view = BuildHostView(request_);
  for (const char* path : {"/usr", "/etc", "/home", "/root", "/opt", "/var"}) {
    ASSERT_NE(Find(view, path), nullptr) << path;
    EXPECT_EQ(Find(view, path)->b, host_.At(path));
    EXPECT_NE(Find(view, path)->flags & child::kViewWritable, 0U);
  }
  EXPECT_EQ(Find(view, "/bin")->b, "usr/bin");
  EXPECT_EQ(Find(view, "/sys"), nullptr);
  for (const char* path : {"/tmp", "/workspace", "/run", "/dev"}) {
    EXPECT_EQ(Find(view, path)->op, ViewOp::kDirectory) << path;
  }
  EXPECT_EQ(Find(view, "/proc")->op, ViewOp::kProc);
  // A file written below a bound directory would be written to the host.
  EXPECT_THAT(view.items, Each(Field(&ViewItem::op, Not(ViewOp::kFile))));
  EXPECT_EQ(AccessOf(view, "/"), view.handled.fs);
}

TEST(EncodeView, WritesRecordsThatReadBack) {
  const std::vector<ViewItem> items = {
      {.op = ViewOp::kDirectory, .mode = 01777, .a = "/tmp"},
      {.op = ViewOp::kFile, .flags = 0, .mode = 0644, .a = "/f", .b = std::string("a\0b\n", 4)},
      {.op = ViewOp::kBind, .flags = child::kViewRecursive, .a = "/usr", .b = "/usr"},
      {.op = ViewOp::kProc, .a = "/proc"}};
  const std::vector<std::byte> bytes = EncodeView(items);
  std::size_t at = 0;
  for (const ViewItem& item : items) {
    child::ViewEntry entry{};
    ASSERT_LE(at + sizeof entry, bytes.size());
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    const char* text = reinterpret_cast<const char*>(bytes.data() + at + sizeof entry);
    const ViewItem read{.op = entry.op,
                        .flags = entry.flags,
                        .mode = entry.mode,
                        .a = std::string(text, entry.bytes_a),
                        .b = std::string(text + entry.bytes_a + 1, entry.bytes_b)};
    EXPECT_EQ(read, item);
    EXPECT_EQ(text[entry.bytes_a], '\0');
    EXPECT_EQ(text[entry.bytes_a + 1 + entry.bytes_b], '\0');
    at += (sizeof entry + entry.bytes_a + entry.bytes_b + 2 + 7) / 8 * 8;
  }
  EXPECT_EQ(at, bytes.size());
}

TEST(EncodeRules, WritesRecordsThatReadBack) {
  const std::vector<LandlockRulePlan> rules = {{"/usr", 13, false}, {"/opt/go/bin", 5, true}};
  const std::vector<std::byte> bytes = EncodeRules(rules);
  std::size_t at = 0;
  for (const LandlockRulePlan& plan : rules) {
    child::LandlockRule rule{};
    ASSERT_LE(at + sizeof rule, bytes.size());
    std::memcpy(&rule, bytes.data() + at, sizeof rule);
    const char* path = reinterpret_cast<const char*>(bytes.data() + at + sizeof rule);
    EXPECT_EQ((LandlockRulePlan{std::string(path, rule.bytes), rule.access, rule.optional == 1}),
              plan);
    EXPECT_EQ(path[rule.bytes], '\0');
    at += (sizeof rule + rule.bytes + 1 + 7) / 8 * 8;
  }
  EXPECT_EQ(at, bytes.size());
}

TEST(ViewOfThisHost, FitsIntoOneMessage) {
  const ViewRequest request{.network = Network::kAllow, .landlock_abi = kernel::LandlockAbi()};
  for (const View& view : {BuildPrivateView(request), BuildHostView(request)}) {
    EXPECT_LT(EncodeView(view.items).size() + sizeof(child::LauncherConfig), child::kMaxMessage);
    EXPECT_LT(EncodeRules(view.rules).size() + sizeof(child::InitConfig), child::kMaxMessage / 4);
  }
}

// The rules of the filtered rung in the kernel, on this host's own files.
class FilteredRules : public ::testing::Test {
 protected:
  void SetUp() override {
    abi_ = kernel::LandlockAbi();
    if (abi_ < 6) GTEST_SKIP() << "the rung needs Landlock version 6, this is " << abi_;
    workspace_.Directory("/a");
    outside_.File("/secret");
  }

  static int Plain(const std::function<long()>& call) {
    return kernel::InForkedProcess([&] { return call() < 0 ? errno : 0; });
  }

  int Confined(Network network, const std::function<long()>& call) const {
    const View view = BuildFilteredView({.network = network, .landlock_abi = abi_},
                                        workspace_.root(), tmp_.root());
    return kernel::InForkedProcess([&] {
      std::vector<kernel::PathRule> rules;
      for (const LandlockRulePlan& rule : view.rules) {
        if (!rule.optional || std::filesystem::exists(rule.path)) {
          rules.push_back({rule.path, rule.access});
        }
      }
      if (!kernel::RestrictSelf(view.handled, rules)) return 255;
      return call() < 0 ? errno : 0;
    });
  }

  static std::function<long()> Open(const std::string& path, int flags) {
    return [=] { return open(path.c_str(), flags | O_CLOEXEC, 0600); };
  }

  int abi_ = 0;
  FakeTree workspace_;
  FakeTree tmp_;
  FakeTree outside_;
};

TEST_F(FilteredRules, OpenTheWorkspaceAndTheRuntimeAndNothingElse) {
  const auto confined = [&](const std::function<long()>& call) {
    return Confined(Network::kDisabled, call);
  };
  EXPECT_EQ(Plain(Open(outside_.At("/secret"), O_RDONLY)), 0);
  EXPECT_EQ(confined(Open(outside_.At("/secret"), O_RDONLY)), EACCES);
  EXPECT_EQ(Plain(Open("/etc/passwd", O_RDONLY)), 0);
  EXPECT_EQ(confined(Open("/etc/passwd", O_RDONLY)), EACCES);
  EXPECT_EQ(Plain(Open("/proc/self/status", O_RDONLY)), 0);
  EXPECT_EQ(confined(Open("/proc/self/status", O_RDONLY)), EACCES);
  EXPECT_EQ(confined(Open(workspace_.At("/a/file"), O_CREAT | O_RDWR)), 0);
  EXPECT_EQ(confined(Open(tmp_.At("/file"), O_CREAT | O_RDWR)), 0);
  EXPECT_EQ(confined(Open("/dev/null", O_WRONLY | O_TRUNC)), 0);
  EXPECT_EQ(confined(Open("/usr/bin/env", O_RDONLY)), 0);
  const auto run = [] {
    return kernel::InForkedProcess(
               [] { return execl("/bin/sh", "sh", "-c", "exit 7", nullptr); }) == 7
               ? 0
               : -1;
  };
  EXPECT_EQ(confined(run), 0);
}

TEST_F(FilteredRules, CloseTcpUnlessTheNetworkIsAllowed) {
  const auto listen_somewhere = [] {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return bind(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                reinterpret_cast<const sockaddr*>(&address), sizeof address);
  };
  EXPECT_EQ(Plain(listen_somewhere), 0);
  EXPECT_EQ(Confined(Network::kDisabled, listen_somewhere), EACCES);
  EXPECT_EQ(Confined(Network::kAllow, listen_somewhere), 0);
}

}  // namespace
}  // namespace palmshed::backends::native
