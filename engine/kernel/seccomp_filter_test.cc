#include "kernel/seccomp_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernel/filter_test_support.h"

namespace palmshed::kernel {
namespace {

constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();

Decision Errno(int number) { return Decision::Always(Verdict::Errno(number)); }

std::uint32_t WordOf(const ArgWord& word, const seccomp_data& call) {
  const std::uint64_t value = call.args[word.index];
  return static_cast<std::uint32_t>(word.high ? value >> 32 : value) & word.mask;
}

// What a decision means, written down without any cleverness.
std::uint32_t Evaluate(const Decision& decision, const seccomp_data& call) {
  for (std::size_t i = 0; i < decision.values.size(); ++i) {
    if (WordOf(decision.argument, call) == decision.values[i]) {
      return Evaluate(decision.then[i], call);
    }
  }
  return decision.otherwise.value;
}

std::uint32_t Evaluate(const FilterSpec& spec, const seccomp_data& call) {
  if (call.arch != static_cast<std::uint32_t>(spec.arch)) return spec.foreign.value;
  const auto number = static_cast<std::uint32_t>(call.nr);
  for (const NumberRange& range : spec.ranges) {
    if (range.first <= number && number <= range.last) return Evaluate(range.decision, call);
  }
  return Evaluate(spec.fallback, call);
}

seccomp_data Call(FilterArch arch, std::uint32_t number) {
  seccomp_data call{};
  call.arch = static_cast<std::uint32_t>(arch);
  call.nr = static_cast<int>(number);
  return call;
}

class RandomSpec {
 public:
  explicit RandomSpec(unsigned seed) : random_(seed) {}

  FilterSpec Make() {
    FilterSpec spec{.foreign = Verdict::Errno(ENOSYS)};
    spec.fallback = Pick(3) == 0 ? Errno(EPERM) : Decision{};
    std::uint32_t next = Pick(3);
    for (std::uint32_t i = 0, count = Pick(25); i < count; ++i) {
      const std::uint32_t last = next + (Pick(2) == 0 ? 0 : Pick(6));
      spec.ranges.push_back({next, last, MakeDecision(2)});
      next = last + 1 + Pick(4);
    }
    if (Pick(2) == 0) spec.ranges.push_back({next, kMax, Errno(ENOSYS)});
    std::shuffle(spec.ranges.begin(), spec.ranges.end(), random_);
    return spec;
  }

  seccomp_data MakeCall(FilterArch arch, std::uint32_t number) {
    seccomp_data call = Call(arch, number);
    for (auto& argument : call.args) argument = std::uint64_t{Pick(4)} << 32 | Pick(8);
    return call;
  }

 private:
  std::uint32_t Pick(std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random_);
  }

  Decision MakeDecision(int depth) {
    const Verdict verdict = Pick(2) == 0 ? Verdict::Allow() : Verdict::Errno(1 + int(Pick(3)));
    if (depth == 0 || Pick(2) == 0) return Decision::Always(verdict);
    Decision decision{
        .otherwise = verdict,
        .argument = {.index = Pick(6), .high = Pick(2) == 0, .mask = Pick(2) == 0 ? kMax : 0x3}};
    for (std::uint32_t value = 0; value < 4; ++value) {
      if (Pick(2) == 0) decision = std::move(decision).When({value}, MakeDecision(depth - 1));
    }
    return decision;
  }

  std::mt19937 random_;
};

TEST(CompileFilter, DecidesAsTheTableSaysForEveryNumberAndArgument) {
  int denied = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomSpec random(seed);
    const FilterSpec spec = random.Make();
    const auto program = CompileFilter(spec);
    for (std::uint32_t number = 0; number < 260; ++number) {
      const seccomp_data call = random.MakeCall(spec.arch, number);
      const std::uint32_t expected = Evaluate(spec, call);
      denied += expected != SECCOMP_RET_ALLOW;
      ASSERT_EQ(RunFilter(program, call), expected) << "seed " << seed << " number " << number;
    }
    const seccomp_data last = random.MakeCall(spec.arch, kMax);
    ASSERT_EQ(RunFilter(program, last), Evaluate(spec, last)) << "seed " << seed;
  }
  EXPECT_GT(denied, 1000);
}

TEST(CompileFilter, AnswersAnotherArchitectureWithoutLookingAtTheNumber) {
  FilterSpec spec{.arch = FilterArch::kAArch64, .foreign = Verdict::Errno(ENOSYS)};
  spec.ranges.push_back({7, 7, Errno(EPERM)});
  const auto program = CompileFilter(spec);
  EXPECT_EQ(RunFilter(program, Call(FilterArch::kX86_64, 7)), Verdict::Errno(ENOSYS).value);
  EXPECT_EQ(RunFilter(program, Call(FilterArch::kAArch64, 7)), Verdict::Errno(EPERM).value);
  EXPECT_EQ(RunFilter(program, Call(FilterArch::kAArch64, 8)), Verdict::Allow().value);
}

TEST(CompileFilter, IgnoresTheHalfOfAnArgumentThatIsNotNamed) {
  FilterSpec spec;
  spec.ranges.push_back({5, 5, Decision{.argument = {.index = 1}}.When({0x5412}, Errno(EPERM))});
  const auto program = CompileFilter(spec);
  seccomp_data call = Call(kHostArch, 5);
  call.args[1] = 0xdeadbeef00005412;
  EXPECT_EQ(RunFilter(program, call), Verdict::Errno(EPERM).value);
  call.args[1] = 0x0000541200000000;
  EXPECT_EQ(RunFilter(program, call), Verdict::Allow().value);
}

TEST(CompileFilter, SpendsOneComparisonOnASingleNumber) {
  FilterSpec spec;
  spec.ranges.push_back({100, 100, Errno(EPERM)});
  // Architecture (load, test), number (load, test), three returns less the shared one.
  EXPECT_EQ(CompileFilter(spec).size(), 6U);
}

TEST(CompileFilter, JoinsNeighboursWithTheSameDecision) {
  FilterSpec apart;
  for (std::uint32_t number = 10; number < 40; ++number) {
    apart.ranges.push_back({number, number, Errno(EPERM)});
  }
  FilterSpec joined;
  joined.ranges.push_back({10, 39, Errno(EPERM)});
  EXPECT_EQ(CompileFilter(apart).size(), CompileFilter(joined).size());
}

TEST(CompileFilter, MakesAProgramThatTheKernelLoadsAndObeys) {
  FilterSpec spec;
  spec.ranges.push_back({SYS_getppid, SYS_getppid, Errno(EDOM)});
  const auto program = CompileFilter(spec);
  const auto getppid_errno = [] {
    errno = 0;
    return syscall(SYS_getppid) == -1 ? errno : 0;
  };
  EXPECT_EQ(InForkedProcess(getppid_errno), 0);
  EXPECT_EQ(InForkedProcess([&] { return LoadFilter(program) ? getppid_errno() : 255; }), EDOM);
}

}  // namespace
}  // namespace palmshed::kernel
