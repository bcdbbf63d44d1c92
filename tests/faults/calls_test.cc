// Each system call of each of the engine's processes fails once, with each error that it can have:
// the call of the library does what it was asked or says clearly why not, no control is silently
// missing, and afterwards the engine works.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
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

/// Who sends descriptors, and what a call of the library says that needed one.
struct Sender {
  std::string_view life;
  Role role{};
  Phase phase{};
  std::string_view said;

  friend void PrintTo(const Sender& sender, std::ostream* out) {
    *out << sender.life << " " << ToString(sender.role);
  }
};

class RefusedDescriptors : public RoundsTest, public ::testing::WithParamInterface<Sender> {};

// What processes of a user have on their way is counted together (unix(7)), so others can be what
// is too much. Which message has a descriptor is not to be seen: each is refused once.
TEST_P(RefusedDescriptors, AreAClearErrorAndWhoSentThemServesOn) {
  const Sender& sender = GetParam();
  const Life& life = *std::ranges::find(kLives, sender.life, &Life::name);
  PALMSHED_SKIP_UNLESS(WantOf(life).empty(), WantOf(life));
  const auto sends = [&](const Call& call) {
    return call.role == sender.role && call.phase == sender.phase && call.number == SYS_sendmsg;
  };
  ASSERT_THAT(Recorded(life).report, Contains("create worked"));
  std::vector<std::string> lines;
  std::ptrdiff_t refused = std::ranges::count_if(Recorded(life).calls, sends);
  EXPECT_GT(refused, 0);
  for (; refused > 0; --refused) {
    std::ptrdiff_t left = refused;
    const auto course = Run(life, [&](const Call& call, Roles&) {
      return sends(call) && --left == 0 ? ETOOMANYREFS : 0;
    });
    ASSERT_TRUE(course);
    EXPECT_THAT(course->stays, IsEmpty());
    EXPECT_EQ(Judge(*course, {.runs = RunsOf(Recorded(life).report)}), "");
    std::ranges::copy(course->report, std::back_inserter(lines));
  }
  EXPECT_THAT(lines, Contains(StartsWith(std::string(sender.said))))
      << ::testing::PrintToString(lines);
}

constexpr Sender kSenders[] = {
    {"launched", Role::kLauncher, Phase::kCreate, "create error OVERLOADED op="},
    {"filtered", Role::kStage, Phase::kCreate, "create error OVERLOADED op="},
    {"memory", Role::kInit, Phase::kExec, "write error OVERLOADED op="},
    {"feeding", Role::kBearer, Phase::kExec, "ran typed startup_failed stage=terminal"}};

INSTANTIATE_TEST_SUITE_P(Of, RefusedDescriptors, ValuesIn(kSenders), [](const auto& one) {
  return std::string(one.param.life) + "_" + std::string(ToString(one.param.role));
});

class FailingWaits : public RoundsTest {};

// A request comes when the bearer is where the limits hold. A wait that fails is no request.
TEST_F(FailingWaits, ForARequestDoNotLetAProgramOutOfItsLimits) {
  const Life& life = *std::ranges::find(kLives, "limited", &Life::name);
  PALMSHED_SKIP_UNLESS(WantOf(life).empty(), WantOf(life));
  const auto is_wait = [](const Call& call) {
    return call.role == Role::kBearer && call.phase == Phase::kExec && call.number == SYS_ppoll;
  };
  PALMSHED_SKIP_UNLESS(std::ranges::any_of(Recorded(life).calls, is_wait),
                       "no control groups, so nobody has to be in one first");
  const auto expected = RunsOf(Recorded(life).report);
  for (int round = 0; round < 5; ++round) {
    int waits = 0;
    // Every other one fails: some bearer waits again.
    const auto course = Run(life, [&](const Call& call, Roles&) {
      return is_wait(call) && waits++ % 2 == 0 ? ENOMEM : 0;
    });
    ASSERT_TRUE(course);
    EXPECT_GT(waits, 0);
    EXPECT_THAT(course->stays, IsEmpty());
    EXPECT_EQ(Judge(*course, {.runs = expected}), "") << ::testing::PrintToString(course->report);
  }
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
