// What of a program's input or output is lost by a fault of the engine's makes no result that looks
// like the program's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "faults/course.h"
#include "faults/life.h"
#include "faults/roles.h"
#include "faults/rounds.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr std::string_view kTypedRan = "ran typed exited stage= exit=0 ";
constexpr std::string_view kFedRan = "ran fed exited stage= exit=0 ";

bool IsOfPrograms(const Call& call, long number) {
  return call.role == Role::kEngine && call.phase == Phase::kExec && call.number == number;
}

class FailingStreams : public RoundsTest {
 protected:
  static const Life& Feeding() { return *std::ranges::find_if(kLives, &Life::feeds); }

  /// What its programs say when each such write fails; the control is what they say when none does.
  std::vector<std::string> RunsWithoutWrites(std::size_t size) {
    const auto course = Run(Feeding(), [&](const Call& call, Roles&) {
      return IsOfPrograms(call, SYS_write) && call.arguments[2] == size ? EIO : 0;
    });
    return course ? RunsOf(course->report) : std::vector<std::string>{};
  }
};

TEST_F(FailingStreams, InputThatIsNotWrittenIsTheEnginesFault) {
  PALMSHED_SKIP_UNLESS(WantOf(Feeding()).empty(), WantOf(Feeding()));
  ASSERT_THAT(RunsOf(Recorded(Feeding()).report),
              ElementsAre(StartsWith(kTypedRan), StartsWith(kFedRan)));
  EXPECT_THAT(RunsWithoutWrites(kTyped),
              ElementsAre(StartsWith("ran typed internal stage=write_input exit=-1 "),
                          StartsWith(kFedRan)));
  EXPECT_THAT(RunsWithoutWrites(kFed),
              ElementsAre(StartsWith(kTypedRan),
                          StartsWith("ran fed internal stage=write_input exit=-1 ")));
}

// Which of the messages brings it is not to be seen: each is lost once.
TEST_F(FailingStreams, TerminalThatIsNotReceivedIsTheEnginesFault) {
  PALMSHED_SKIP_UNLESS(WantOf(Feeding()).empty(), WantOf(Feeding()));
  const auto messages = std::ranges::count_if(
      Recorded(Feeding()).calls, [](const Call& call) { return IsOfPrograms(call, SYS_recvmsg); });
  std::vector<std::string> typed;
  for (std::ptrdiff_t lost = 0; lost < messages; ++lost) {
    std::ptrdiff_t left = lost;
    const auto course = Run(Feeding(), [&](const Call& call, Roles&) {
      return IsOfPrograms(call, SYS_recvmsg) && left-- == 0 ? ENOMEM : 0;
    });
    ASSERT_TRUE(course);
    for (const std::string& run : RunsOf(course->report)) {
      if (run.starts_with("ran typed ")) typed.push_back(run);
    }
  }
  EXPECT_THAT(typed, Contains(StartsWith("ran typed internal stage=read_output exit=-1 ")));
  EXPECT_THAT(typed, Each(AnyOf(StartsWith(kTypedRan), StartsWith("ran typed internal stage="),
                                StartsWith("ran typed backend_lost "))));
}

}  // namespace
}  // namespace palmshed::tests
