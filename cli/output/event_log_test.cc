#include "cli/output/event_log.h"

#include <gtest/gtest.h>

#include <chrono>

#include "palmshed/events.h"

namespace palmshed::cli {
namespace {

TEST(FormatEvent, PutsAllOnOneLine) {
  const Event event{.name = "exec.end",
                    .time = std::chrono::system_clock::time_point(std::chrono::milliseconds(1007)),
                    .sandbox = "sbx_1",
                    .execution = "exec_2",
                    .fields = {{"status", "failed"}, {"exitCode", "3"}}};
  EXPECT_EQ(FormatEvent(event),
            "event exec.end time=1970-01-01T00:00:01.007Z sandbox=sbx_1 execution=exec_2 "
            "status=failed exitCode=3");
  EXPECT_EQ(FormatEvent({.name = "backend.init"}),
            "event backend.init time=1970-01-01T00:00:00.000Z");
}

}  // namespace
}  // namespace palmshed::cli
