#include "benchmarks/report.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "benchmarks/peers.h"
#include "benchmarks/schedule.h"
#include "benchmarks/statistics.h"

namespace palmshed::benchmarks {
namespace {

const std::vector<Micros> kTwos(9, Micros(2));
const std::vector<Micros> kSixes(9, Micros(6));

TEST(Summarize, ComparesWithTheFloorAndThePeersThatAreThere) {
  const std::vector<Series> series{{.name = kFloor, .floor = kFloor, .samples = kTwos},
                                   {.name = "there", .floor = kFloor, .samples = kSixes},
                                   {.name = kNoopFloor, .floor = kNoopFloor, .samples = kTwos}};
  const std::vector<Peer> peers{{.name = "there", .command = {"/bin/there"}},
                                {.name = "gone", .absent = "not installed"}};
  Random random(1);
  const LatencyTable table = Summarize(std::chrono::milliseconds(50), series, peers, random);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_DOUBLE_EQ(table.rows[1].to_floor.value, 3);
  ASSERT_NE(ToPeer(table.rows[0], "there"), nullptr);
  EXPECT_DOUBLE_EQ(ToPeer(table.rows[0], "there")->value, 1.0 / 3);
  EXPECT_EQ(ToPeer(table.rows[0], "gone"), nullptr);
  // It runs another program.
  EXPECT_EQ(ToPeer(table.rows[2], "there"), nullptr);

  EXPECT_TRUE(table.failures.empty());

  const auto figures = ToFigures(table);
  EXPECT_EQ(figures[1].at, 50);
  EXPECT_EQ(figures[1].ratios.size(), 2U);
  EXPECT_EQ(figures[1].ratios.front().first, kFloor);
}

TEST(Summarize, TellsOfWhatFailedAndLeavesOutWhatWasGivenUp) {
  const std::vector<Series> series{
      {.name = kFloor, .floor = kFloor, .samples = kTwos},
      {.name = "shaky", .floor = kFloor, .samples = kSixes, .failures = 1, .failure = "busy"},
      {.name = "broken", .floor = kFloor, .failures = 3, .failure = "gone"}};
  const std::vector<Peer> peers{{.name = "shaky", .command = {"/bin/shaky"}},
                                {.name = "broken", .command = {"/bin/broken"}}};
  Random random(1);
  const LatencyTable table = Summarize(std::chrono::milliseconds(50), series, peers, random);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(ToPeer(table.rows[0], "broken"), nullptr);
  ASSERT_EQ(table.failures.size(), 2U);
  EXPECT_EQ(table.failures[0].name, "shaky");
  EXPECT_EQ(table.failures[0].words, "1 failed after 50 ms idle, made again: busy");
  EXPECT_EQ(table.failures[1].words, "3 failed after 50 ms idle, given up: gone");
}

}  // namespace
}  // namespace palmshed::benchmarks
