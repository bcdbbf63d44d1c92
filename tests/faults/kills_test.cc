// The engine, its launcher or a sandbox's init is killed at each system call that any of the
// engine's processes makes: everything of it ends, what survives works on, and nothing is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstddef>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "faults/course.h"
#include "faults/life.h"
#include "faults/roles.h"
#include "faults/rounds.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

using ::testing::IsEmpty;
using ::testing::ValuesIn;

struct Victim {
  const char* name;
  Role role;
  bool forked;  ///< The host program has forked, and the child holds on to all it has.

  friend void PrintTo(const Victim& victim, std::ostream* out) { *out << victim.name; }
};
constexpr Victim kVictims[] = {{"Engine", Role::kEngine, false},
                               {"EngineThatHasForked", Role::kEngine, true},
                               {"Launcher", Role::kLauncher, false},
                               {"Init", Role::kInit, false},
                               {"Bearer", Role::kBearer, false}};

constexpr Phase kPhases[] = {Phase::kCreate, Phase::kExec, Phase::kDestroy, Phase::kClose};

/// Rounds of each test in the run of every day.
constexpr std::size_t kRounds = 3;

/// Others have not begun to live yet, or have ended, at some of a phase's steps.
bool IsThereThroughout(Role role, Phase phase) {
  return role == Role::kEngine || (phase == Phase::kExec && role != Role::kBearer);
}

std::map<std::string, Step> StepsIn(const Course& course, Phase phase,
                                    std::vector<std::string>& names) {
  std::map<std::string, Step> steps;
  std::map<Role, std::size_t> counts;
  for (const Call& call : course.calls) {
    if (call.phase != phase) continue;
    const Step step{.phase = phase, .role = call.role, .call = {}, .ordinal = counts[call.role]++};
    names.push_back(step.Name());
    steps[step.Name()] = step;
  }
  return steps;
}

class Kills : public RoundsTest,
              public ::testing::WithParamInterface<std::tuple<Life, Victim, Phase>> {
 protected:
  void Kill(const Life& life, const Victim& victim, const Step& step) {
    Countdown countdown(step);
    const auto course = Run(
        life,
        [&](const Call& call, Roles& roles) {
          const bool now = countdown.Comes(call);
          const pid_t pid = now ? roles.Latest(victim.role) : 0;
          came_ += now ? 1 : 0;
          killed_ += pid > 0 && ::kill(pid, SIGKILL) == 0 ? 1 : 0;
          return 0;
        },
        victim.forked);
    if (!course) throw std::runtime_error("no listener");
    EXPECT_THAT(course->stays, IsEmpty());
    if (victim.role != Role::kEngine || !countdown.came()) {
      const Expectation expected{.runs = RunsOf(Recorded(life).report),
                                 .maybe_killed = victim.role == Role::kBearer};
      EXPECT_EQ(Judge(*course, expected), "") << ::testing::PrintToString(course->report);
    } else {
      EXPECT_EQ(course->ended, "killed by signal 9");
    }
    if (victim.role == Role::kEngine || !IsClean()) {
      EXPECT_EQ(Collect(life), "");
    }
  }

  int came_ = 0;    ///< Steps that came; which thread makes which call differs a little each time.
  int killed_ = 0;  ///< Those at which there was somebody to kill.
};

// C019, C021
TEST_P(Kills, LeaveNothing) {
  const auto& [life, victim, phase] = GetParam();
  PALMSHED_SKIP_UNLESS(WantOf(life).empty(), WantOf(life));
  const Course& whole = Recorded(life);
  std::vector<std::string> names;
  const auto steps = StepsIn(whole, phase, names);
  ASSERT_FALSE(names.empty());
  for (const std::string& name : Chosen(names, RoundsOf(life, kRounds))) {
    SCOPED_TRACE(Alone(name));
    Kill(life, victim, steps.at(name));
  }
  if (IsThereThroughout(victim.role, phase)) {
    EXPECT_EQ(killed_, came_);
  }
}

std::string NameOfTest(const ::testing::TestParamInfo<Kills::ParamType>& info) {
  const auto& [life, victim, phase] = info.param;
  return std::string(life.name) + "_" + victim.name + "_" + std::string(ToString(phase));
}

std::vector<Kills::ParamType> Cases() {
  std::vector<Kills::ParamType> cases;
  for (const Life& life : kLives) {
    for (const Victim& victim : kVictims) {
      if (victim.role == Role::kLauncher && !life.launched) continue;  // There is none.
      for (const Phase phase : kPhases) {
        if (life.Has(phase)) cases.emplace_back(life, victim, phase);
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Kills, ValuesIn(Cases()), NameOfTest);

}  // namespace
}  // namespace palmshed::tests
