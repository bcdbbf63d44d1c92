// The weaker rung where Landlock cannot carry it. The engine is one with switches (base/faults.h):
// this machine's kernel may be too new to be told otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "palmshed/palmshed.h"
#include "support/filtered_rung.h"
#include "support/kernel_test.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class OldLandlock : public KernelTest {
 protected:
  void SetUp() override {
    PALMSHED_SKIP_UNLESS(HasLandlockScopes(), "Landlock has no scopes here (ABI 6)");
  }
};

Result<Sandbox> CreateWithFault(const TempDir& root, const char* fault) {
  ::setenv("PALMSHED_FAULT", fault, 1);
  Engine engine = MakeEngine(root);
  return engine.CreateSandbox();
}

// C037
TEST_F(OldLandlock, WithoutScopesTheRungIsRefusedWithARemedy) {
  OnFilteredRung([] {
    const TempDir root;
    EXPECT_TRUE(CreateWithFault(root, "")) << "the control: with scopes it is had";
    const auto refused = CreateWithFault(root, "landlock-without-scopes");
    ASSERT_THAT(refused, FailsWith(ErrorCode::kUnsupported));
    EXPECT_THAT(refused.error().message, HasSubstr("clone_launcher"));
    EXPECT_THAT(refused.error().remedy, Not(IsEmpty()));
  });
}

// A sandbox that is not confined must not come to be: its signals would reach the whole user.
TEST_F(OldLandlock, WithoutAProvenScopeNothingStarts) {
  OnFilteredRung([] {
    const TempDir root;
    const auto refused = CreateWithFault(root, "no-landlock");
    ASSERT_THAT(refused, FailsWith(ErrorCode::kUnsupported));
    EXPECT_EQ(refused.error().op, "signal_scope");
    EXPECT_THAT(refused.error().remedy, Not(IsEmpty()));
  });
}

}  // namespace
}  // namespace palmshed::tests
