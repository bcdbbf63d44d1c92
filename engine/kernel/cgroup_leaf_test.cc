// A leaf of the best tree on this host, with real processes in it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "kernel/cgroup.h"
#include "kernel/cgroup_files.h"
#include "kernel/cgroup_find.h"
#include "kernel/cgroup_place.h"
#include "kernel/cgroup_test_support.h"
#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::kernel {
namespace {

using literals::operator""_MiB;
using std::chrono::milliseconds;

class CgroupLeafTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    std::string why;
    tree_ = HostTree(why);
    if (!tree_) GTEST_SKIP() << why;
    auto group = tree_->MakeGroup(name_);
    ASSERT_TRUE(group) << group.error().message;
    group_ = std::move(*group);
    leaf_ = NewLeaf();
  }
  void TearDown() override {
    // Orphans included, since they are ours to wait for.
    if (leaf_) leaf_->Kill();
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    leaf_.reset();
    group_.reset();
    if (!tree_) return;
    for (const std::string& directory : tree_->DirectoriesOf(name_)) {
      EXPECT_FALSE(std::filesystem::exists(directory)) << directory;
    }
  }

  std::unique_ptr<CgroupLeaf> NewLeaf() const {
    auto leaf = group_->MakeLeaf();
    EXPECT_TRUE(leaf) << leaf.error().message;
    return leaf ? std::move(*leaf) : nullptr;
  }
  /// Puts the child in, and lets it run under `limits`.
  void Start(const WaitingChild& child, const GroupLimits& limits) const {
    ASSERT_TRUE(leaf_->Attach(child.pid()));
    auto limited = leaf_->Limit(limits);
    ASSERT_TRUE(limited) << limited.error().message;
    ASSERT_TRUE(leaf_->Begin());
    child.Go();
  }
  GroupUsage Usage() const {
    auto usage = leaf_->Usage();
    EXPECT_TRUE(usage);
    return usage ? *usage : GroupUsage{};
  }
  /// Limits the group of the sandbox, which only the host around us does otherwise.
  void WriteAbove(const std::string& file2, const std::string& file1,
                  const std::string& text) const {
    bool written = false;
    for (const std::string& directory : tree_->DirectoriesOf(name_)) {
      for (const std::string& file : {file1, file2}) {
        std::ofstream out(std::filesystem::path(directory) / file, std::ios::in);
        if (out.is_open()) written = (out << text << std::flush).good();
      }
    }
    ASSERT_TRUE(written);
  }
  /// How often the first leaf's memory limit was met.
  std::uint64_t TimesMet() const {
    std::uint64_t times = 0;
    for (const std::string& directory : tree_->DirectoriesOf(name_)) {
      times += ReadGroupNumber(directory + "/1/memory.failcnt").value_or(0);
      times += ReadGroupKey(directory + "/1/memory.events", "max").value_or(0);
    }
    return times;
  }
  bool CanKill() const {
    return std::filesystem::exists(tree_->DirectoriesOf(name_).front() + "/cgroup.kill");
  }
  bool OomTold(int timeout_ms) const {
    if (leaf_->OomEvent() < 0) return false;
    auto told = sys::WaitReadable(leaf_->OomEvent(), timeout_ms);
    return told && *told;
  }

  const std::string name_ = MakeId("sbx_");
  std::unique_ptr<CgroupTree> tree_;
  std::unique_ptr<CgroupGroup> group_;
  std::unique_ptr<CgroupLeaf> leaf_;
};

#define PALMSHED_NEEDS(controller) \
  if (!tree_->controllers().controller) GTEST_SKIP() << "no controller: " #controller

TEST_F(CgroupLeafTest, MemoryWithinTheLimitIsFree) {
  PALMSHED_NEEDS(memory);
  WaitingChild child([] { return UseMemory(40); });
  Start(child, {.memory = 64_MiB});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  EXPECT_EQ(Usage().oom, 0U);
  EXPECT_EQ(Usage().oom_kills, 0U);
}

TEST_F(CgroupLeafTest, MemoryBeyondTheLimitIsKilledAndCounted) {
  PALMSHED_NEEDS(memory);
  WaitingChild child([] { return UseMemory(200); });
  Start(child, {.memory = 64_MiB});
  EXPECT_TRUE(Killed(child.Wait()));
  const bool tells = leaf_->OomEvent() >= 0;
  EXPECT_EQ(OomTold(0), tells);
  const GroupUsage usage = Usage();
  EXPECT_GT(usage.oom, 0U);
  EXPECT_GE(usage.oom_kills, 1U) << "a kernel that kills the whole group counts one twice";
  EXPECT_GT(usage.memory_failures, 0U);
  EXPECT_FALSE(OomTold(0)) << "Usage has heard of it";
}

TEST_F(CgroupLeafTest, QuotaOfAGroupAboveMayBeLower) {
  PALMSHED_NEEDS(cpu_quota);
  WriteAbove("cpu.max", "cpu.cfs_quota_us", "20000");
  WaitingChild child([] { return Burn(60); });
  Start(child, {.cpu_quota = 0.9});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  ASSERT_TRUE(leaf_->Limit({.cpu_quota = 0.1}));
  ASSERT_TRUE(leaf_->Limit({}));
}

TEST_F(CgroupLeafTest, SharedMemoryCounts) {
  PALMSHED_NEEDS(memory);
  auto file = sys::MemfdCreate("shared", false);
  ASSERT_TRUE(file);
  WaitingChild child([fd = file->get()] { return UseTmpfs(fd, 200); });
  Start(child, {.memory = 64_MiB});
  EXPECT_TRUE(Killed(child.Wait()));
  EXPECT_GT(Usage().oom, 0U);
}

TEST_F(CgroupLeafTest, AnonymousMemoryIsTold) {
  PALMSHED_NEEDS(memory);
  auto ready = sys::Pipe();
  ASSERT_TRUE(ready);
  WaitingChild child([&] {
    if (UseMemory(40) != 0 || ::write(ready->second.get(), "r", 1) != 1) return 1;
    (void)::pause();
    return 0;
  });
  Start(child, {.memory = 64_MiB});
  auto told = sys::WaitReadable(ready->first.get(), 10'000);
  ASSERT_TRUE(told && *told);
  const auto memory = leaf_->AnonymousMemory();
  ASSERT_TRUE(memory && *memory);
  EXPECT_GE(Count(**memory), Count(40_MiB));
  EXPECT_LT(Count(**memory), Count(48_MiB));
}

// C079
TEST_F(CgroupLeafTest, PageCacheIsGivenUpBeforeAnythingIsKilled) {
  PALMSHED_NEEDS(memory);
  const std::string path = "/var/tmp/" + name_;
  WaitingChild child([&] { return UseFile(path.c_str(), 600); });
  Start(child, {.memory = 128_MiB});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  const GroupUsage usage = Usage();
  EXPECT_EQ(usage.oom, 0U);
  EXPECT_EQ(usage.oom_kills, 0U);
  EXPECT_GT(TimesMet(), 0U) << "the limit was never met: this shows nothing";
}

TEST_F(CgroupLeafTest, ProcessesBeyondTheLimitAreRefusedAndCounted) {
  PALMSHED_NEEDS(pids);
  auto hold = sys::Pipe();
  ASSERT_TRUE(hold);
  WaitingChild child([&] {
    (void)::close(hold->second.get());
    return ForkUntilRefused(50, hold->first.get());
  });
  Start(child, {.pids = 10});
  EXPECT_TRUE(ExitedWith(child.Wait(), 9)) << "itself is one of the ten";
  EXPECT_EQ(Usage().pids_refused, 1U);
}

TEST_F(CgroupLeafTest, ProcessesWithinTheLimitAreNot) {
  PALMSHED_NEEDS(pids);
  auto hold = sys::Pipe();
  ASSERT_TRUE(hold);
  WaitingChild child([&] {
    (void)::close(hold->second.get());
    return ForkUntilRefused(9, hold->first.get());
  });
  Start(child, {.pids = 10});
  EXPECT_TRUE(ExitedWith(child.Wait(), 9));
  EXPECT_EQ(Usage().pids_refused, 0U);
}

TEST_F(CgroupLeafTest, QuotaSlowsDownAndTells) {
  PALMSHED_NEEDS(cpu_quota);
  WaitingChild child([] { return Burn(20); });
  const auto start = std::chrono::steady_clock::now();
  Start(child, {.cpu_quota = 0.02});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  // 2 ms in each period of 100, which even a busy machine gives: the tenth period has to begin, and
  // a tick of 4 ms may be used in advance.
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(250));
  const GroupUsage usage = Usage();
  EXPECT_TRUE(usage.throttled);
  EXPECT_GE(usage.throttled_periods, 2U);
}

TEST_F(CgroupLeafTest, CpuTimeOfOrphansCounts) {
  PALMSHED_NEEDS(cpu_time);
  WaitingChild child([] { return BurnInOrphan(150); });
  Start(child, {});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  const auto used = leaf_->CpuTime();
  ASSERT_TRUE(used);
  EXPECT_GE(*used, milliseconds(145));
  EXPECT_LT(*used, milliseconds(250));
}

TEST_F(CgroupLeafTest, CountsFromBeginOn) {
  PALMSHED_NEEDS(memory);
  {
    WaitingChild child([] { return Burn(100) + UseMemory(200); });
    Start(child, {.memory = 64_MiB});
    EXPECT_TRUE(Killed(child.Wait()));
    EXPECT_GE(Usage().oom_kills, 1U);
  }
  WaitingChild child([] { return Burn(20); });
  Start(child, {.memory = 64_MiB});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  const GroupUsage usage = Usage();
  EXPECT_EQ(usage.oom, 0U);
  EXPECT_EQ(usage.oom_kills, 0U);
  EXPECT_EQ(usage.memory_failures, 0U);
  ASSERT_TRUE(usage.cpu_time);
  EXPECT_LT(*usage.cpu_time, milliseconds(100));
}

// C082
TEST_F(CgroupLeafTest, LimitsCanBeRaisedAndLoweredAndLifted) {
  PALMSHED_NEEDS(memory);
  const auto run = [&](Bytes limit, std::size_t mebibytes) {
    WaitingChild child([=] { return UseMemory(mebibytes); });
    Start(child, {.memory = limit});
    return child.Wait();
  };
  EXPECT_TRUE(Killed(run(32_MiB, 80)));
  EXPECT_TRUE(ExitedWith(run(128_MiB, 80), 0));
  EXPECT_TRUE(Killed(run(64_MiB, 80)));
  EXPECT_TRUE(ExitedWith(run(Bytes{}, 80), 0));
}

TEST_F(CgroupLeafTest, KillEndsEverythingInIt) {
  if (!CanKill()) GTEST_SKIP() << "this kernel cannot kill a group";
  auto alive = sys::Pipe();
  ASSERT_TRUE(alive);
  WaitingChild child([&] {
    const bool escaped = ::fork() == 0;
    if (escaped) (void)::setsid();
    (void)!::write(alive->second.get(), "x", 1);
    return ::pause();
  });
  Start(child, {});
  alive->second.reset();
  std::array<std::byte, 1> byte{};
  ASSERT_TRUE(sys::Read(alive->first.get(), byte));
  ASSERT_TRUE(sys::Read(alive->first.get(), byte));
  EXPECT_FALSE(*sys::WaitReadable(alive->first.get(), 0)) << "both are there";
  leaf_->Kill();
  EXPECT_TRUE(Killed(child.Wait()));
  ASSERT_TRUE(*sys::WaitReadable(alive->first.get(), 10'000));
  EXPECT_EQ(*sys::Read(alive->first.get(), byte), 0U);
}

TEST_F(CgroupLeafTest, IsReusableWhenNothingIsLeft) {
  WaitingChild child([] { return 0; });
  Start(child, {});
  EXPECT_FALSE(leaf_->Reusable());
  (void)child.Wait();
  EXPECT_TRUE(leaf_->Reusable());
}

TEST_F(CgroupLeafTest, IsNotReusableWhileTmpfsIsCharged) {
  PALMSHED_NEEDS(memory);
  auto file = sys::MemfdCreate("left", false);
  ASSERT_TRUE(file);
  WaitingChild child([fd = file->get()] { return UseTmpfs(fd, 16); });
  Start(child, {.memory = 64_MiB});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  EXPECT_FALSE(leaf_->Reusable());
  file->reset();
  EXPECT_TRUE(leaf_->Reusable()) << "the control: it was the file";
}

TEST_F(CgroupLeafTest, PageCacheDoesNotKeepItFromReuse) {
  PALMSHED_NEEDS(memory);
  const std::string path = "/var/tmp/" + name_;
  auto kept = sys::Open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_TRUE(kept);
  WaitingChild child([fd = kept->get()] {
    static std::array<char, 1 << 20> chunk;
    for (int i = 0; i < 4; ++i) {  // Not much more: what keeps the pages in order is charged too.
      if (::write(fd, chunk.data(), chunk.size()) < 0) return 1;
    }
    return 0;
  });
  Start(child, {.memory = 64_MiB});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  EXPECT_TRUE(leaf_->Reusable());
  std::filesystem::remove(path);
}

// ---- beside a process that stays in it

TEST_F(CgroupLeafTest, RenewedItCountsAnew) {
  PALMSHED_NEEDS(memory);
  const WaitingChild stays([] { return 0; });
  ASSERT_TRUE(leaf_->Attach(stays.pid()));
  {
    WaitingChild child([] { return Burn(100) + UseMemory(16); });
    Start(child, {.memory = 64_MiB});
    EXPECT_TRUE(ExitedWith(child.Wait(), 0));
    EXPECT_GE(*Usage().cpu_time, milliseconds(95));
  }
  EXPECT_FALSE(leaf_->Reusable()) << "one is still there";
  ASSERT_TRUE(leaf_->Renew());
  ASSERT_TRUE(leaf_->Limit({.memory = 64_MiB}));
  ASSERT_TRUE(leaf_->Begin());
  const GroupUsage usage = Usage();
  EXPECT_LT(*usage.cpu_time, milliseconds(50));
  EXPECT_EQ(usage.oom, 0U);
}

TEST_F(CgroupLeafTest, IsNotRenewedWhileTmpfsIsCharged) {
  PALMSHED_NEEDS(memory);
  const WaitingChild stays([] { return 0; });  // Before the file, so that it has none.
  ASSERT_TRUE(leaf_->Attach(stays.pid()));
  auto file = sys::MemfdCreate("left", false);
  ASSERT_TRUE(file);
  WaitingChild child([fd = file->get()] { return UseTmpfs(fd, 16); });
  Start(child, {.memory = 64_MiB});
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
  EXPECT_FALSE(leaf_->Renew());
  file->reset();
  EXPECT_TRUE(leaf_->Renew()) << "the control: it was the file";
}

// A process that only waits may need a page to wait with.
TEST_F(CgroupLeafTest, LimitTooLowToWaitWithIsLiftedAtAttach) {
  PALMSHED_NEEDS(memory);
  ASSERT_TRUE(leaf_->Limit({.memory = Bytes{16U << 10}}));
  WaitingChild child([] { return UseMemory(4); });
  ASSERT_TRUE(leaf_->Attach(child.pid()));
  child.Go();
  EXPECT_TRUE(ExitedWith(child.Wait(), 0));
}

TEST_F(CgroupLeafTest, HoldsDescriptorsFromAttachToRest) {
  const CgroupControllers has = tree_->controllers();
  GroupLimits limits;
  if (has.memory) limits.memory = 64_MiB;
  if (has.pids) limits.pids = 32;
  if (has.cpu_quota) limits.cpu_quota = 0.5;
  const auto open = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = open();
  for (int i = 0; i < 3; ++i) {
    const WaitingChild child([] { return 0; });
    const auto with_child = open();
    ASSERT_TRUE(leaf_->Attach(child.pid()));
    EXPECT_EQ(open() > with_child, has.cpu_time || (i > 0 && has.any())) << "the control";
    if (i == 2) {
      leaf_->Rest();
      EXPECT_EQ(open(), with_child);
    }
    ASSERT_TRUE(leaf_->Limit(limits));
    ASSERT_TRUE(leaf_->Begin());
    ASSERT_TRUE(leaf_->Usage());
    leaf_->Rest();
    EXPECT_EQ(open(), with_child);
  }
  EXPECT_EQ(open(), before);
}

TEST_F(CgroupLeafTest, NobodyIsMovedForANumberThatIsNone) {
  const auto mine = sys::ReadFile("/proc/self/cgroup");
  EXPECT_FALSE(leaf_->Attach(0));
  EXPECT_FALSE(leaf_->Attach(-1));
  EXPECT_EQ(*sys::ReadFile("/proc/self/cgroup"), *mine);
}

TEST_F(CgroupLeafTest, GroupsOfOneNameConflict) {
  auto again = tree_->MakeGroup(name_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
}

TEST_F(CgroupLeafTest, LeftGroupsAreRemovedWithTheirProcesses) {
  WaitingChild child([] { return ::pause(); });
  Start(child, {});
  if (!CanKill()) GTEST_SKIP() << "this kernel cannot kill a group";
  const auto directories = tree_->DirectoriesOf(name_);
  auto removed = RemoveCgroups(directories);
  EXPECT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(Killed(child.Wait()));
  for (const std::string& directory : directories) {
    EXPECT_FALSE(std::filesystem::exists(directory)) << directory;
  }
  EXPECT_TRUE(RemoveCgroups(directories)) << "gone already";
}

// A container's own limit, say, is not this execution's doing.
TEST(CgroupAbove, LimitOfAGroupAboveIsToldApart) {
  auto host = ThisCgroupHost();
  ASSERT_TRUE(host);
  const auto place = FindPlace1(*host, "memory");
  if (!place) GTEST_SKIP() << "cgroup v1 has no memory controller here";
  const std::string container = place->group + "/" + MakeId("palmshed-test-");
  if (!host->make(container)) GTEST_SKIP() << "no group can be made in " << place->group;
  // As that process sees it which is in the container's group, whose mount shows nothing above.
  host->self_cgroup = "4:memory:/\n";
  host->mountinfo = "35 31 0:32 / " + container + " rw - cgroup cgroup rw,memory\n";
  {
    NoCgroups missing;
    const auto tree = FindCgroupTreeOn(*host, missing);
    ASSERT_TRUE(tree) << missing.reason;
    ASSERT_TRUE(WriteGroupFile(container + "/memory.limit_in_bytes", "33554432"));
    auto group = tree->MakeGroup("g");
    ASSERT_TRUE(group);
    auto leaf = (*group)->MakeLeaf();
    ASSERT_TRUE(leaf);
    WaitingChild child([] { return UseMemory(80); });
    ASSERT_TRUE((*leaf)->Attach(child.pid()));
    ASSERT_TRUE((*leaf)->Limit({.memory = 128_MiB}));
    ASSERT_TRUE((*leaf)->Begin());
    child.Go();
    EXPECT_TRUE(Killed(child.Wait()));
    const auto usage = (*leaf)->Usage();
    ASSERT_TRUE(usage);
    EXPECT_EQ(usage->oom_kills, 1U);
    EXPECT_EQ(usage->oom, 0U);
  }
  EXPECT_TRUE(RemoveCgroups({container}));
}

TEST(RemoveCgroups, TouchesNothingElse) {
  const std::string path = "/var/tmp/" + MakeId("sbx_");
  std::filesystem::create_directory(path);
  EXPECT_FALSE(RemoveCgroups({path}));
  EXPECT_TRUE(std::filesystem::remove(path));
}

}  // namespace
}  // namespace palmshed::kernel
