// The weaker rung where Landlock cannot carry it. The engine is one with switches (base/faults.h):
// this machine's kernel may be too new to be told otherwise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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

// With namespaces the scopes are one wall of two, and nobody is told that it stands where it does
// not.
TEST_F(OldLandlock, WithoutScopesNoneIsNamed) {
  const auto process_isolation = [](const char* fault) {
    const TempDir root;
    ::setenv("PALMSHED_FAULT", fault, 1);
    Engine engine = MakeEngine(root);
    const Capabilities capabilities = Must(engine.GetCapabilities());
    const auto found = std::ranges::find(capabilities.controls, "processIsolation", &Control::name);
    return found == capabilities.controls.end() ? Control{} : *found;
  };
  const Control with = process_isolation("");
  EXPECT_TRUE(with.works);
  EXPECT_THAT(with.mechanism, HasSubstr("scope"));
  EXPECT_THAT(with.detail, Not(HasSubstr("note:")));
  const Control without = process_isolation("landlock-without-scopes");
  EXPECT_TRUE(without.works);
  EXPECT_EQ(without.mechanism, "pid namespace");
  EXPECT_THAT(without.detail, HasSubstr("can signal each other"));
}

}  // namespace
}  // namespace palmshed::tests
