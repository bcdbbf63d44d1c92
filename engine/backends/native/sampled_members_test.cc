#include "backends/native/sampled_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <vector>

#include "kernel/process_table.h"

namespace palmshed::backends::native {
namespace {

using kernel::ProcessStat;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ProcessStat Process(pid_t pid, pid_t parent, pid_t session, int own = 0, int waited = 0) {
  return {.id = {.pid = pid, .started = 100U + static_cast<unsigned>(pid)},
          .parent = parent,
          .session = session,
          .state = 'S',
          .threads = 1,
          .cpu = milliseconds(own),
          .waited_cpu = milliseconds(waited)};
}

const ProcessStat kInit = Process(1, 0, 1);

class MembersTest : public ::testing::Test {
 protected:
  void SetUp() override { members_.Add(1, Process(10, 1, 10).id); }
  std::vector<pid_t> Of(Members::Run run, std::vector<ProcessStat> all, bool adopted = true) {
    all.insert(all.begin(), kInit);
    std::vector<pid_t> numbers;
    const Members::Census census = members_.Update(all, [&](pid_t first) {
      EXPECT_NE(first, 31) << "asked of children of init's alone";
      return adopted;
    });
    for (const ProcessStat& process : census.at(run)) {
      numbers.push_back(process.id.pid);
    }
    return numbers;
  }
  Members members_;
};

TEST_F(MembersTest, DescendantsBelongAndInitDoesNot) {
  EXPECT_THAT(Of(1, {Process(10, 1, 10), Process(11, 10, 10), Process(12, 11, 12)}),
              UnorderedElementsAre(10, 11, 12));
}

TEST_F(MembersTest, ChildThatStillWaitsInInitsSessionBelongs) {
  EXPECT_THAT(Of(1, {Process(10, 1, 1)}), ElementsAre(10));
}

TEST_F(MembersTest, ChildrenThatWaitForAnotherProgramDoNot) {
  EXPECT_THAT(Of(1, {Process(10, 1, 10), Process(20, 1, 1)}), ElementsAre(10));
}

TEST_F(MembersTest, OrphanThatWasSeenBeforeStays) {
  (void)Of(1, {Process(10, 1, 10), Process(11, 10, 11)});
  EXPECT_THAT(Of(1, {Process(11, 1, 11)}, false), ElementsAre(11));
}

TEST_F(MembersTest, AnotherProcessOfTheSameNumberDoesNot) {
  (void)Of(1, {Process(10, 1, 10), Process(11, 10, 10)});
  ProcessStat other = Process(11, 1, 1);
  other.id.started += 5;
  EXPECT_THAT(Of(1, {Process(10, 1, 10), other}, false), ElementsAre(10));
}

TEST_F(MembersTest, OrphanIsKnownByItsSession) {
  EXPECT_THAT(Of(1, {Process(11, 1, 10)}, false), ElementsAre(11));
  (void)Of(1, {Process(10, 1, 10), Process(12, 10, 12)});
  EXPECT_THAT(Of(1, {Process(13, 1, 12)}, false), ElementsAre(13)) << "of a leader that is gone";
}

TEST_F(MembersTest, WhatHasEscapedEverybodysSightCountsWithAll) {
  members_.Add(2, Process(20, 1, 20).id);
  const std::vector<ProcessStat> all{Process(10, 1, 10), Process(20, 1, 20), Process(30, 1, 30),
                                     Process(31, 30, 30)};
  EXPECT_THAT(Of(1, all), UnorderedElementsAre(10, 30, 31));
  EXPECT_THAT(Of(2, all), UnorderedElementsAre(20, 30, 31));
}

TEST_F(MembersTest, ExecutionsWithoutLimitsCountInNobodysUse) {
  EXPECT_THAT(Of(1, {Process(10, 1, 10), Process(30, 1, 30)}, false), ElementsAre(10));
}

TEST_F(MembersTest, ExecutionsAreKeptApart) {
  members_.Add(2, Process(20, 1, 20).id);
  const std::vector<ProcessStat> all{Process(10, 1, 10), Process(20, 1, 20), Process(11, 10, 10),
                                     Process(21, 20, 21)};
  EXPECT_THAT(Of(1, all), UnorderedElementsAre(10, 11));
  EXPECT_THAT(Of(2, all), UnorderedElementsAre(20, 21));
}

TEST_F(MembersTest, NothingOfARemovedExecutionIsLeft) {
  (void)Of(1, {Process(10, 1, 10), Process(11, 10, 10)});
  members_.Remove(1);
  EXPECT_THAT(members_.Update({kInit, Process(11, 1, 10)}, [](pid_t) { return true; }), IsEmpty());
}

class CpuLedgerTest : public ::testing::Test {
 protected:
  milliseconds After(const std::vector<ProcessStat>& members) {
    ledger_.Update(members);
    return std::chrono::duration_cast<milliseconds>(ledger_.total());
  }
  CpuLedger ledger_;
};

TEST_F(CpuLedgerTest, LivingAndWaitedForAddUp) {
  EXPECT_EQ(After({Process(10, 1, 10, 100, 50), Process(11, 10, 10, 30)}), milliseconds(180));
}

TEST_F(CpuLedgerTest, ChildThatWasWaitedForCountsOnce) {
  (void)After({Process(10, 1, 10, 100), Process(11, 10, 10, 300)});
  EXPECT_EQ(After({Process(10, 1, 10, 100, 310)}), milliseconds(410));
}

TEST_F(CpuLedgerTest, ChildThatNobodyWaitedForIsRemembered) {
  (void)After({Process(10, 1, 10, 100), Process(11, 10, 10, 300)});
  EXPECT_EQ(After({Process(10, 1, 10, 100, 0)}), milliseconds(400));
  // Two ticks are taken off, for rounding.
  EXPECT_EQ(After({Process(10, 1, 10, 150, 0)}), milliseconds(430));
}

TEST_F(CpuLedgerTest, GrandchildIsInheritedThroughItsDeadParent) {
  (void)After({Process(10, 1, 10), Process(11, 10, 10, 100), Process(12, 11, 10, 200)});
  EXPECT_EQ(After({Process(10, 1, 10, 0, 300)}), milliseconds(300));
}

TEST_F(CpuLedgerTest, OrphanIsRemembered) {
  (void)After({Process(10, 1, 10, 50), Process(11, 1, 11, 300)});
  EXPECT_EQ(After({Process(10, 1, 10, 50)}), milliseconds(350));
  EXPECT_EQ(After({}), milliseconds(350)) << "all dead";
}

TEST_F(CpuLedgerTest, ItNeverFalls) {
  (void)After({Process(10, 1, 10, 500)});
  EXPECT_EQ(After({Process(10, 1, 10, 400)}), milliseconds(500));
}

TEST_F(CpuLedgerTest, ManyChildrenThatAreWaitedForAreNotCountedTwice) {
  for (int i = 0; i < 100; ++i) {
    (void)After({Process(10, 1, 10, 0, i * 10), Process(100 + i, 10, 10, 10)});
  }
  EXPECT_LE(After({Process(10, 1, 10, 0, 1000)}), milliseconds(1020));
}

}  // namespace
}  // namespace palmshed::backends::native
