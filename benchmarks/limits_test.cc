#include "benchmarks/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "benchmarks/peers.h"
#include "benchmarks/report.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Ratio kGoodLimited{.value = 1.05, .low = 1.0, .high = 1.08};

LatencyTable Table(int gap_ms, Ratio exec, Ratio command_line, Ratio limited = kGoodLimited) {
  const Row exec_row{.name = kExec, .floor = kFloor, .to_floor = exec};
  const Row command_row{
      .name = kCommandLine, .floor = kFloor, .to_floor = {}, .to_peers = {{kPeer, command_line}}};
  const Row limited_row{.name = kLimitedExec, .floor = kExec, .to_floor = limited};
  return {.gap = std::chrono::milliseconds(gap_ms), .rows = {exec_row, command_row, limited_row}};
}

constexpr Ratio kGoodExec{.value = 1.1, .low = 1.0, .high = 1.2};
constexpr Ratio kGoodRun{.value = 0.5, .low = 0.4, .high = 0.6};

TEST(Limits, AreKeptByGoodRatios) {
  const std::vector<LatencyTable> tables{Table(0, kGoodExec, kGoodRun),
                                         Table(50, kGoodExec, kGoodRun),
                                         Table(1000, kGoodExec, kGoodRun)};
  EXPECT_THAT(Excesses(tables), IsEmpty());
}

TEST(Limits, AreExceededOnlyBeyondTheInterval) {
  const Ratio doubtful{.value = 1.4, .low = 1.29, .high = 1.6};
  const Ratio certain{.value = 1.4, .low = 1.31, .high = 1.6};
  const std::vector<LatencyTable> tables{Table(0, doubtful, kGoodRun), Table(50, certain, kGoodRun),
                                         Table(1000, kGoodExec, kGoodRun)};
  EXPECT_THAT(Excesses(tables), ElementsAre(HasSubstr("exec with 50 ms idle: 1.40 V")));
}

TEST(Limits, CompareTheCommandLineWithBubblewrap) {
  const Ratio slow{.value = 1.6, .low = 1.51, .high = 1.8};
  const std::vector<LatencyTable> tables{Table(0, kGoodExec, slow), Table(50, kGoodExec, kGoodRun),
                                         Table(1000, kGoodExec, kGoodRun)};
  EXPECT_THAT(Excesses(tables), ElementsAre(HasSubstr("palmshed run with 0 ms idle: 1.60 B")));
}

TEST(Limits, CompareLimitedExecutionsWithUnlimitedOnes) {
  const Ratio slow{.value = 1.3, .low = 1.2, .high = 1.4};
  const std::vector<LatencyTable> tables{Table(0, kGoodExec, kGoodRun),
                                         Table(50, kGoodExec, kGoodRun),
                                         Table(1000, kGoodExec, kGoodRun, slow)};
  EXPECT_THAT(Excesses(tables),
              ElementsAre(HasSubstr("exec, every limit with 1000 ms idle: 1.30 x without limits")));
}

TEST(Limits, AreNotJudgedOnABusyMachine) {
  const auto floor = [](double p10, double median) {
    const Row row{.name = kFloor,
                  .floor = kFloor,
                  .p10 = Micros(p10),
                  .median = Micros(median),
                  .to_floor = {}};
    return LatencyTable{.gap = std::chrono::milliseconds(0), .rows = {row}};
  };
  EXPECT_FALSE(TooBusy(std::vector{floor(500, 600), floor(700, 700)}));
  EXPECT_TRUE(TooBusy(std::vector{floor(500, 600), floor(700, 1400)}));
}

TEST(Limits, AreNotAskedOfWhatTheHostCannotRun) {
  std::vector<LatencyTable> tables{Table(0, kGoodExec, kGoodRun), Table(50, kGoodExec, kGoodRun),
                                   Table(1000, kGoodExec, kGoodRun)};
  for (LatencyTable& table : tables) table.rows.pop_back();
  EXPECT_THAT(Excesses(tables), SizeIs(3));
  for (LatencyTable& table : tables) table.absent = {kLimitedExec};
  EXPECT_THAT(Excesses(tables), IsEmpty());
}

TEST(Limits, AreNotKeptByWhatWasNotMeasured) { EXPECT_THAT(Excesses({}), SizeIs(7)); }

}  // namespace
}  // namespace palmshed::benchmarks
