// Each system call of each of the engine's processes fails once, with each error that it can have:
// the call of the library does what it was asked or says clearly why not, no control is silently
// missing, and afterwards the engine works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "faults/course.h"
#include "faults/errors.h"
#include "faults/life.h"
#include "faults/roles.h"
#include "faults/rounds.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::ValuesIn;

constexpr Phase kPhases[] = {Phase::kCreate, Phase::kExec, Phase::kDestroy, Phase::kClose};

/// Rounds of each test in the run of every day.
constexpr std::size_t kRounds = 16;

struct Fault {
  Step step;
  int error = 0;

  std::string Name() const { return step.Name() + "/" + ::strerrorname_np(error); }
};

/// Not a want of something that passes: with that no sandbox may get weaker.
bool IsRefusal(int error) {
  return error == EPERM || error == EACCES || error == ENOSPC || error == EIO;
}

std::map<std::string, Fault> FaultsIn(const Course& course, Phase phase,
                                      std::vector<std::string>& names) {
  std::map<std::string, Fault> faults;
  std::map<std::pair<Role, long>, std::size_t> counts;
  for (const Call& call : course.calls) {
    if (call.phase != phase) continue;
    const Step step{.phase = phase,
                    .role = call.role,
                    .call = call.number,
                    .ordinal = counts[{call.role, call.number}]++};
    for (const int error : ErrorsOf(call)) {
      const Fault fault{.step = step, .error = error};
      names.push_back(fault.Name());
      faults[fault.Name()] = fault;
    }
  }
  return faults;
}

class FailingCalls : public RoundsTest,
                     public ::testing::WithParamInterface<std::tuple<Life, Phase>> {
 protected:
  /// True when it came to that call: which thread makes which one differs a little each time.
  bool Fail(const Life& life, const Fault& fault) {
    Countdown countdown(fault.step);
    const auto course = Run(life, [&](const Call& call, Roles&) {
      const bool possible = std::ranges::count(ErrorsOf(call), fault.error) != 0;
      return countdown.Comes(call) && possible ? fault.error : 0;
    });
    if (!course) throw std::runtime_error("no listener");
    EXPECT_THAT(course->stays, IsEmpty());
    const Expectation expected{.runs = RunsOf(Recorded(life).report),
                               .maybe_other_way = IsRefusal(fault.error)};
    EXPECT_EQ(Judge(*course, expected), "") << ::testing::PrintToString(course->report);
    if (!IsClean()) {
      EXPECT_EQ(Collect(life), "");
    }
    return countdown.came();
  }
};

TEST_P(FailingCalls, AreClearErrorsOrMakeNoDifference) {
  const auto& [life, phase] = GetParam();
  PALMSHED_SKIP_UNLESS(WantOf(life).empty(), WantOf(life));
  const Course& whole = Recorded(life);
  std::vector<std::string> names;
  const auto faults = FaultsIn(whole, phase, names);
  PALMSHED_SKIP_UNLESS(!names.empty(), "none of its calls can fail");
  const auto chosen = Chosen(names, RoundsOf(life, kRounds));
  std::size_t came = 0;
  for (const std::string& name : chosen) {
    SCOPED_TRACE(Alone(name));
    came += Fail(life, faults.at(name)) ? 1 : 0;
  }
  if (phase == Phase::kCreate) {
    EXPECT_GE(2 * came, chosen.size());
  }
}

class RefusedDescriptors : public RoundsTest {};

// What processes of a user have on their way is counted together (unix(7)), so others can be what
// is too much. Which of the launcher's messages has a descriptor is not to be seen: each is refused
// once.
TEST_F(RefusedDescriptors, OfALauncherAreAClearErrorAndItServesOn) {
  const Life& launched = *std::ranges::find(kLives, "launched", &Life::name);
  PALMSHED_SKIP_UNLESS(WantOf(launched).empty(), WantOf(launched));
  const auto sends = [](const Call& call) {
    return call.role == Role::kLauncher && call.phase == Phase::kCreate &&
           call.number == SYS_sendmsg;
  };
  ASSERT_THAT(Recorded(launched).report, Contains("create worked"));
  std::vector<std::string> created;
  for (auto refused = std::ranges::count_if(Recorded(launched).calls, sends); refused > 0;) {
    auto left = refused--;
    const auto course = Run(launched, [&](const Call& call, Roles&) {
      return sends(call) && --left == 0 ? ETOOMANYREFS : 0;
    });
    ASSERT_TRUE(course);
    EXPECT_THAT(course->stays, IsEmpty());
    EXPECT_EQ(Judge(*course, {.runs = RunsOf(Recorded(launched).report)}), "");
    for (const std::string& line : course->report) {
      if (line.starts_with("create ")) created.push_back(line);
    }
  }
  EXPECT_THAT(created, Contains(StartsWith("create error OVERLOADED op=")))
      << ::testing::PrintToString(created);
}

std::string NameOfTest(const ::testing::TestParamInfo<FailingCalls::ParamType>& info) {
  const auto& [life, phase] = info.param;
  return std::string(life.name) + "_" + std::string(ToString(phase));
}

std::vector<FailingCalls::ParamType> Cases() {
  std::vector<FailingCalls::ParamType> cases;
  for (const Life& life : kLives) {
    for (const Phase phase : kPhases) {
      if (life.Has(phase)) cases.emplace_back(life, phase);
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, FailingCalls, ValuesIn(Cases()), NameOfTest);

}  // namespace
}  // namespace palmshed::tests
