#include "backends/native/subordinate_gids.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "workspace/test_tree.h"

namespace palmshed::backends::native {
namespace {

class SubordinateGids : public ::testing::Test {
 protected:
  std::optional<std::uint32_t> First(std::string_view subgid) const {
    tree_.Write("passwd", "root:x:0:0::/:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n");
    tree_.Write("subgid", subgid);
    return FirstSubordinateGid(1000, {.passwd = tree_.At("passwd"), .subgid = tree_.At("subgid")});
  }

  workspace::TestTree tree_;
};

TEST_F(SubordinateGids, AreFoundByNameAndByNumber) {
  EXPECT_EQ(First("bob:100000:65536\nann:165536:65536\nann:300000:1\n"), 165536U);
  EXPECT_EQ(First("1000:200000:10\n"), 200000U);
}

TEST_F(SubordinateGids, OthersAndWhatMakesNoSenseAreNobodys) {
  EXPECT_EQ(First("bob:100000:65536\nannie:1:1\n"), std::nullopt);
  EXPECT_EQ(First("ann:100000:0\n"), std::nullopt);
  EXPECT_EQ(First("ann:-5:10\nann\nann:1\n"), std::nullopt);
  EXPECT_EQ(First(""), std::nullopt);
  EXPECT_EQ(FirstSubordinateGid(1000, {.passwd = tree_.At("none"), .subgid = tree_.At("none")}),
            std::nullopt);
}

}  // namespace
}  // namespace palmshed::backends::native
