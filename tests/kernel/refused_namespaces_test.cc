// A host that refuses namespaces, as a container runtime's filter does: an engine there says what
// is missing and how to get it, or uses the documented weaker rung. It never runs unisolated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "palmshed/palmshed.h"
#include "support/host_listener.h"
#include "support/kernel_test.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

class RefusedNamespaces : public KernelTest {};

void ExpectRefusal(const Error& error) {
  EXPECT_EQ(error.code, ErrorCode::kUnsupported) << ::testing::PrintToString(error);
  EXPECT_THAT(error.message, Not(IsEmpty()));
  EXPECT_THAT(error.remedy, Not(IsEmpty()));
}

/// What holds on every rung.
void ExpectIsolation(Sandbox& sandbox) {
  const TempDir project(0755);
  const std::string canary = project.AddFile("secret.txt", "canary");
  ExpectOnlyOutside(sandbox, {"read", canary});
  const auto tcp = HostListener::Tcp();
  ExpectOnlyOutside(sandbox, {"tcp", "127.0.0.1", tcp->where()});
  const auto abstract = HostListener::Abstract();
  ExpectOnlyOutside(sandbox, {"abstract", abstract->where()});
  EXPECT_EQ(tcp->hits(), 1);
  EXPECT_EQ(abstract->hits(), 1);
}

void TryEverySandbox() {
  ASSERT_NE(RunOnHost({ProbePath(), "call", "unshare-user"}, As::kSelf).exit_code, kReached);
  const TempDir root;
  Engine engine = MakeEngine(root);
  for (const Network network : {Network::kDisabled, Network::kAllow}) {
    auto made = engine.CreateSandbox({.network = network});
    if (!made) {
      ExpectRefusal(made.error());
      continue;
    }
    EXPECT_EQ(Must(made->capabilities()).filesystem_view, "filtered");
    AddProbe(*made, "probe");
    if (network == Network::kDisabled) ExpectIsolation(*made);
  }
  // The same answer the second time: nothing is remembered as working.
  const auto again = engine.CreateSandbox();
  if (!again) ExpectRefusal(again.error());
}

// C037
TEST_F(RefusedNamespaces, AreReportedWithARemedy) {
  AsOrdinaryUser([] {
    ASSERT_EQ(RunOnHost({ProbePath(), "call", "unshare-user"}, As::kSelf).exit_code, kReached);
    ASSERT_TRUE(RefuseNamespaces());
    TryEverySandbox();
  });
}

// C037
TEST_F(RefusedNamespaces, AreReportedToRootAsWell) {
  InForkedProcess([] {
    ASSERT_TRUE(RefuseNamespaces());
    TryEverySandbox();
  });
}

// C037
TEST_F(RefusedNamespaces, CapabilitiesPromiseNothingThatIsMissing) {
  AsOrdinaryUser([] {
    ASSERT_TRUE(RefuseNamespaces());
    const TempDir root;
    Engine engine = MakeEngine(root);
    const auto capabilities = engine.GetCapabilities("native", true);
    if (!capabilities) return ExpectRefusal(capabilities.error());
    if (engine.CreateSandbox()) return;  // The weaker rung, whose promises have tests of their own.
    EXPECT_FALSE(capabilities->network_isolation);
    EXPECT_NE(capabilities->os_filesystem_isolation, Support::kSupported);
  });
}

}  // namespace
}  // namespace palmshed::tests
