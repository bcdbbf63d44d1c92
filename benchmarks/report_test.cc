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

  const auto figures = ToFigures(table);
  EXPECT_EQ(figures[1].at, 50);
  EXPECT_EQ(figures[1].ratios.size(), 2U);
  EXPECT_EQ(figures[1].ratios.front().first, kFloor);
}

}  // namespace
}  // namespace palmshed::benchmarks
