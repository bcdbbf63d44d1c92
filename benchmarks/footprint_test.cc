#include "benchmarks/footprint.h"

#include <gtest/gtest.h>

#include <vector>

#include "benchmarks/die.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

TEST(Footprint, TellsTheEngineFromItsSandboxes) {
  const Footprint before = MeasureFootprint();
  EXPECT_GT(before.engine.pss, 0);
  EXPECT_EQ(before.sandboxes.pss, 0);
  Engine engine = Must(Engine::Create());
  std::vector<Sandbox> live;
  live.push_back(Must(engine.CreateSandbox()));
  live.push_back(Must(engine.CreateSandbox()));
  const Footprint two = MeasureFootprint();
  EXPECT_GT(two.engine.page_tables, before.engine.page_tables);
  EXPECT_GT(two.sandboxes.pss, 0);
  EXPECT_GT(two.kernel, 0);
  for (Sandbox& sandbox : live) Must(sandbox.Destroy());
  EXPECT_EQ(MeasureFootprint().sandboxes.pss, 0);
}

}  // namespace
}  // namespace palmshed::benchmarks
