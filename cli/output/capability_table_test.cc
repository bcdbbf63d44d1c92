#include "cli/output/capability_table.h"

#include <gtest/gtest.h>

#include <string>

#include "palmshed/capabilities.h"

namespace palmshed::cli {
namespace {

Capabilities Isolating() {
  return {.filesystem = true,
          .network_isolation = true,
          .os_filesystem_isolation = Support::kSupported};
}

TEST(IsolationWorks, NeedsFilesAndNetwork) {
  EXPECT_TRUE(IsolationWorks(Isolating()));
  Capabilities no_network = Isolating();
  no_network.network_isolation = false;
  EXPECT_FALSE(IsolationWorks(no_network));
  Capabilities no_view = Isolating();
  no_view.os_filesystem_isolation = Support::kUnknown;
  EXPECT_FALSE(IsolationWorks(no_view));
}

TEST(FormatCapabilities, ShowsLossAndRemedyWhereAControlIsMissing) {
  Capabilities capabilities = Isolating();
  capabilities.controls = {{.name = "network",
                            .works = true,
                            .mechanism = "network namespace",
                            .detail = "connect refused",
                            .lost = "never shown",
                            .remedy = "never shown"},
                           {.name = "memory",
                            .mechanism = "",
                            .detail = "no controller",
                            .lost = "memory limits",
                            .remedy = "mount it"}};
  const std::string text = FormatCapabilities(capabilities);
  EXPECT_TRUE(
      text.contains("  ok  network  network namespace\n      seen:       connect refused\n"))
      << text;
  EXPECT_TRUE(text.contains("  NO  memory   -\n")) << text;
  EXPECT_TRUE(text.contains("      without it: memory limits\n      to enable:  mount it\n"))
      << text;
  EXPECT_FALSE(text.contains("never shown")) << text;
}

}  // namespace
}  // namespace palmshed::cli
