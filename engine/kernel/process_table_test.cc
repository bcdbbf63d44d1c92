#include "kernel/process_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "kernel/test_namespace.h"

namespace palmshed::kernel {
namespace {

using std::chrono::milliseconds;

constexpr char kLine[] =
    "41 (a b) R) c) S 1 41 40 0 -1 4194304 1 2 3 4 10 5 20 30 20 0 3 0 777 1 2\n";

TEST(ParseProcessStat, NameMayHoldAnything) {
  const auto stat = ParseProcessStat(kLine);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->id.pid, 41);
  EXPECT_EQ(stat->id.started, 777U);
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 1);
  EXPECT_EQ(stat->session, 40);
  EXPECT_EQ(stat->threads, 3U);
  EXPECT_EQ(stat->cpu, milliseconds(150));
  EXPECT_EQ(stat->waited_cpu, milliseconds(500));
}

TEST(ParseProcessStat, AnythingElseIsRefused) {
  const std::string line = kLine;
  for (const std::string& bad :
       {std::string(), std::string("41"), std::string("41 (x"), std::string("x (y) S 1"),
        line.substr(0, line.find(" 777")), std::string(line).replace(line.find("10 5"), 2, "-1")}) {
    EXPECT_FALSE(ParseProcessStat(bad)) << bad;
  }
}

std::vector<pid_t> Numbers(const std::vector<ProcessStat>& processes) {
  std::vector<pid_t> numbers;
  numbers.reserve(processes.size());
  for (const ProcessStat& process : processes) numbers.push_back(process.id.pid);
  std::sort(numbers.begin() + 1, numbers.end());
  return numbers;
}

class ProcessTableTest : public ::testing::Test {
 protected:
  static int Orphan(const Steps& made, const Steps& end) {
    if (::fork() == 0) {
      (void)::setsid();
      made.Done();
      (void)end.Await();
      ::_exit(0);
    }
    return 0;
  }
  Steps made_;
  Steps end_;
  TestNamespace space_{
      {[this] { return Orphan(made_, end_); }, [this] { return end_.Await() ? 0 : 1; }}};
};

TEST_F(ProcessTableTest, NamespaceHoldsItsOwnProcessesAndNoOther) {
  auto table = ProcessTable::OfNamespace(space_.init());
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(Numbers(*table->Read()), (std::vector<pid_t>{1, 2, 3}));
  EXPECT_EQ(*table->NumberOf(space_.child(0)), 2);
  space_.Go(0);
  ASSERT_TRUE(made_.Await());
  ASSERT_TRUE(space_.AwaitEnd());  // Its parent's.
  const auto after = table->Read();
  EXPECT_EQ(Numbers(*after), (std::vector<pid_t>{1, 3, 4}));
  EXPECT_EQ(after->back().parent, 1);
  EXPECT_EQ(after->back().session, 4);
  EXPECT_EQ(*table->Orphans(), (std::set<pid_t>{3, 4}));
}

TEST_F(ProcessTableTest, BelowInitAreItsDescendantsAndOrphansAndNoOther) {
  auto table = ProcessTable::Below(space_.init());
  ASSERT_TRUE(table) << table.error().message;
  std::vector<pid_t> expected{space_.init(), space_.child(0), space_.child(1)};
  EXPECT_EQ(Numbers(*table->Read()), expected);
  space_.Go(0);
  ASSERT_TRUE(made_.Await());
  ASSERT_TRUE(space_.AwaitEnd());
  expected = {space_.init()};
  for (const pid_t child : TestNamespace::ChildrenOf(space_.init())) expected.push_back(child);
  std::sort(expected.begin() + 1, expected.end());
  ASSERT_EQ(expected.size(), 3U);
  EXPECT_EQ(Numbers(*table->Read()), expected) << "what was foreign once stays out, and no more";
  EXPECT_EQ(*table->NumberOf(space_.child(1)), space_.child(1));
}

/// They may still be on their way to where they wait.
bool Settles(ProcessPeek& peek) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!peek.Unchanged()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_F(ProcessTableTest, PeekSeesWhenSomebodyHasRun) {
  const Steps burnt;
  const Steps end;
  const TestNamespace space({[&] {
    Burn(0.05);
    burnt.Done();
    return end.Await() ? 0 : 1;
  }});
  auto table = ProcessTable::OfNamespace(space.init());
  ASSERT_TRUE(table);
  auto peek = ProcessPeek::Of(table->directory(), *table->Read());
  ASSERT_TRUE(peek);
  EXPECT_TRUE(Settles(*peek));
  space.Go(0);
  ASSERT_TRUE(burnt.Await());
  EXPECT_FALSE(peek->Unchanged());
  end.Done();
  ASSERT_TRUE(space.AwaitEnd());
  EXPECT_FALSE(peek->Unchanged()) << "it has ended";
}

TEST_F(ProcessTableTest, WithoutInitThereIsAnError) {
  auto table = ProcessTable::Below(space_.init());
  ASSERT_TRUE(table);
  ASSERT_TRUE(table->Read());
  space_.KillInit();
  EXPECT_FALSE(table->Read());
}

TEST(ProcessTable, ProcOfAnotherNamespaceIsRefused) {
  const auto table = ProcessTable::OfNamespace(::getpid());
  ASSERT_FALSE(table) << "its /proc has another first process";
  EXPECT_EQ(table.error().sys_errno, ENODEV);
}

}  // namespace
}  // namespace palmshed::kernel
