#include "plan/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::plan {
namespace {

using namespace std::chrono_literals;
using namespace palmshed::literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const Offer::Limit kEnforced{.enforcement = Enforcement::kKernel};

/// A host that enforces every limit.
Offer Enforcing() {
  return {.backend = "native",
          .private_view = true,
          .network_disabled = true,
          .fresh_proc = true,
          .search_path = {"/usr/bin"},
          .usable_cpus = 4,
          .cpu_time = kEnforced,
          .cpu_quota = kEnforced,
          .memory = kEnforced,
          .pids = kEnforced,
          .disk = kEnforced,
          .storage_memory = kEnforced,
          .storage_loop = kEnforced};
}

SandboxOptions EveryLimit() {
  return {
      .cpu_quota = 1.5, .cpu_time_limit = 2s, .memory = 64_MiB, .disk_quota = 1_GiB, .pids = 32};
}

const Limits kEveryLimit{
    .cpu_time = 2s, .cpu_quota = 1.5, .memory = 64_MiB, .pids = 32, .disk = 1_GiB};

SandboxPlan Plan(const SandboxOptions& options, const Offer& offer = Enforcing()) {
  const auto plan = PlanSandbox(options, offer);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan.value_or(SandboxPlan{});
}

Result<ExecPlan> PlanTrue(const ExecOptions& options, const SandboxPlan& sandbox) {
  return PlanExec({.args = {"true"}, .options = options}, sandbox);
}

/// What of a plan with every limit is left to enforce when one is not on offer.
struct Control {
  std::string_view name;
  Offer::Limit Offer::* offered;
  std::function<void(Limits&)> without;
};

const std::vector<Control>& Controls() {
  static const std::vector<Control> kControls{
      {"memory", &Offer::memory, [](Limits& limits) { limits.memory = {}; }},
      {"cpuQuota", &Offer::cpu_quota, [](Limits& limits) { limits.cpu_quota = 0; }},
      {"pids", &Offer::pids, [](Limits& limits) { limits.pids = 0; }},
      {"cpuTimeLimit", &Offer::cpu_time, [](Limits& limits) { limits.cpu_time = 0ms; }},
      {"diskQuota", &Offer::disk, [](Limits& limits) { limits.disk = {}; }}};
  return kControls;
}

TEST(Limits, ReachTheExecutionWhereTheyAreEnforced) {
  const SandboxPlan sandbox = Plan(EveryLimit());
  EXPECT_EQ(sandbox.ceilings, kEveryLimit);
  EXPECT_THAT(sandbox.weaker, IsEmpty());
  const auto plan = PlanTrue({}, sandbox);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->limits, kEveryLimit);
  EXPECT_THAT(plan->weaker, IsEmpty());
  EXPECT_FALSE(PlanTrue({}, Plan({}))->limits.any());
}

TEST(Limits, AreAsGoodWhenSampled) {
  Offer offer = Enforcing();
  offer.memory.enforcement = Enforcement::kSampled;
  const auto plan = PlanTrue({}, Plan({.memory = 64_MiB}, offer));
  EXPECT_EQ(plan->limits.memory, 64_MiB);
  EXPECT_THAT(plan->weaker, IsEmpty()) << "the capabilities say that it is sampled";
}

TEST(Limits, AnExecutionLowersEachOfThem) {  // C091
  const auto plan = PlanTrue({.cpu_time_limit = 1s, .cpu_quota = 0.5, .memory = 32_MiB, .pids = 8},
                             Plan(EveryLimit()));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->limits,
            (Limits{.cpu_time = 1s, .cpu_quota = 0.5, .memory = 32_MiB, .pids = 8, .disk = 1_GiB}));
  EXPECT_EQ(PlanTrue({}, Plan(EveryLimit()))->limits, kEveryLimit) << "nothing sticks";  // C082
}

TEST(Limits, AnExecutionMayAskForExactlyWhatTheSandboxHas) {
  const ExecOptions same{.cpu_time_limit = 2s, .cpu_quota = 1.5, .memory = 64_MiB, .pids = 32};
  EXPECT_EQ(PlanTrue(same, Plan(EveryLimit()))->limits, kEveryLimit);
}

TEST(Limits, AnExecutionRaisesNoneOfThem) {  // C091
  const struct {
    ExecOptions options;
    std::string field;
    std::string message;
  } cases[] = {
      {{.cpu_time_limit = 2001ms},
       "cpuTimeLimit",
       "cpuTimeLimit of 2001 ms is more than the sandbox allows: 2000 ms"},
      {{.cpu_quota = 1.6},
       "cpuQuota",
       "cpuQuota of 1.6 cores is more than the sandbox allows: 1.5 cores"},
      // All the processors there are need no enforcing, but the sandbox has fewer.
      {{.cpu_quota = 64},
       "cpuQuota",
       "cpuQuota of 64 cores is more than the sandbox allows: 1.5 cores"},
      {{.memory = Bytes{Count(64_MiB) + 1}},
       "memory",
       "memory of 67108865 bytes is more than the sandbox allows: 67108864 bytes"},
      {{.pids = 33}, "pids", "pids of 33 processes is more than the sandbox allows: 32 processes"},
  };
  for (const auto& [options, field, message] : cases) {
    const auto refused = PlanTrue(options, Plan(EveryLimit()));
    ASSERT_FALSE(refused) << field;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidOptions) << field;
    EXPECT_EQ(refused.error().field, field);
    EXPECT_EQ(refused.error().message, message);
  }
}

TEST(Limits, ZeroOfAnExecutionIsNoWish) {  // C053
  const ExecOptions zero{
      .timeout = 0ms, .cpu_time_limit = 0ms, .cpu_quota = 0, .memory = 0_B, .pids = 0};
  EXPECT_EQ(PlanTrue(zero, Plan(EveryLimit()))->limits, kEveryLimit);
  EXPECT_FALSE(PlanTrue(zero, Plan({}))->limits.any());
}

TEST(Limits, ACeilingHoldsThoughItIsNotEnforced) {  // C091
  Offer offer = Enforcing();
  offer.memory = {};
  const SandboxPlan sandbox = Plan({.memory = 64_MiB, .degraded = {"memory"}}, offer);
  EXPECT_EQ(PlanTrue({.memory = 65_MiB}, sandbox).error().code, ErrorCode::kInvalidOptions);
  EXPECT_TRUE(PlanTrue({.memory = 63_MiB}, sandbox));
}

TEST(Limits, AQuotaOfAllProcessorsIsFree) {
  EXPECT_EQ(PlanTrue({}, Plan({.cpu_quota = 4}))->limits.cpu_quota, 0);
  EXPECT_EQ(PlanTrue({.cpu_quota = 64}, Plan({}))->limits.cpu_quota, 0);
  EXPECT_EQ(PlanTrue({.cpu_quota = 3.9}, Plan({}))->limits.cpu_quota, 3.9);
  Offer offer = Enforcing();
  offer.cpu_quota = {};
  const SandboxPlan all = Plan({.cpu_quota = 4}, offer);
  EXPECT_THAT(all.weaker, IsEmpty()) << "nothing to concede";
  EXPECT_EQ(PlanTrue({.cpu_quota = 2}, all).error().code, ErrorCode::kUnsupported);
}

TEST(Limits, OnlyWhatIsMissingIsConceded) {  // C006
  for (const Control& control : Controls()) {
    Offer offer = Enforcing();
    offer.*control.offered = {};
    SandboxOptions options = EveryLimit();
    const auto refused = PlanSandbox(options, offer);
    ASSERT_FALSE(refused) << control.name;
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(refused.error().field, control.name);
    options.degraded = {"memory", "cpuQuota", "pids", "cpuTimeLimit", "diskQuota"};
    const auto plan = PlanTrue({}, Plan(options, offer));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_THAT(plan->weaker, ElementsAre(control.name));
    Limits left = kEveryLimit;
    control.without(left);
    EXPECT_EQ(plan->limits, left) << control.name;
  }
}

TEST(Limits, AnExecutionsConcessionJoinsTheSandboxs) {
  Offer offer = Enforcing();
  offer.memory = {};
  offer.pids = {};
  const SandboxPlan sandbox = Plan({.memory = 64_MiB, .degraded = {"memory", "pids"}}, offer);
  EXPECT_THAT(sandbox.weaker, ElementsAre("memory"));
  EXPECT_THAT(PlanTrue({.pids = 4}, sandbox)->weaker, UnorderedElementsAre("memory", "pids"));
  EXPECT_THAT(PlanTrue({}, sandbox)->weaker, ElementsAre("memory"));
}

TEST(Limits, AreFoundOutOnlyForWhoAsks) {
  int asked = 0;
  Offer offer = Enforcing();
  offer.memory = {};
  offer.disk = {};
  offer.storage_memory = {};
  offer.find_limits = [&](Offer& found) {
    ++asked;
    found.memory = found.storage_memory = kEnforced;
  };
  const SandboxPlan none = Plan({}, offer);
  EXPECT_FALSE(PlanTrue({}, none)->limits.any());
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(PlanTrue({.memory = 1_MiB}, none)->limits.memory, 1_MiB);
  EXPECT_EQ(asked, 1);
  const SandboxPlan stored = Plan({.disk_quota = 8_MiB, .storage = Storage::kMemory}, offer);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(PlanTrue({}, stored)->limits.disk, 8_MiB);
  EXPECT_EQ(asked, 2);
}

TEST(Limits, ARefusalSaysWhatIsMissingAndHowToGetIt) {
  Offer offer = Enforcing();
  offer.memory = {.missing = {.reason = "no cgroup may be written",
                              .remedy = "systemd-run --user --scope -p Delegate=yes palmshed"}};
  const Error with_remedy = PlanSandbox({.memory = 64_MiB}, offer).error();
  EXPECT_EQ(with_remedy.message, "memory cannot be enforced here: no cgroup may be written");
  EXPECT_EQ(with_remedy.remedy,
            "systemd-run --user --scope -p Delegate=yes palmshed (or name memory in degraded to "
            "run without it)");
  offer.memory.missing.remedy = "Run as root.";
  EXPECT_EQ(PlanSandbox({.memory = 64_MiB}, offer).error().remedy,
            "Run as root. Or name memory in degraded to run without it.");
  offer.cpu_quota = {};
  const Error without = PlanSandbox({.cpu = 1}, offer).error();
  EXPECT_EQ(without.message, "cpu cannot be enforced here: nothing on this host enforces it");
  EXPECT_EQ(without.remedy, "Leave cpu out, or name cpuQuota in degraded to run without it.");
}

TEST(Storage, OfAFixedSizeIsItsOwnQuota) {
  Offer offer = Enforcing();
  offer.disk = {};
  for (const Storage storage : {Storage::kMemory, Storage::kLoop}) {
    const SandboxPlan sandbox = Plan({.disk_quota = 8_MiB, .storage = storage}, offer);
    EXPECT_EQ(sandbox.storage, storage);
    EXPECT_THAT(sandbox.weaker, IsEmpty());
    EXPECT_EQ(PlanTrue({}, sandbox)->limits.disk, 8_MiB);
  }
  EXPECT_EQ(PlanSandbox({.disk_quota = 8_MiB}, offer).error().code, ErrorCode::kUnsupported);
}

TEST(Storage, OfAFixedSizeNeedsASize) {
  for (const std::optional<Bytes> size : {std::optional<Bytes>(), std::optional(0_B)}) {
    const auto refused =
        PlanSandbox({.disk_quota = size, .storage = Storage::kMemory}, Enforcing());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidOptions);
    EXPECT_EQ(refused.error().field, "diskQuota");
    EXPECT_EQ(refused.error().message, "diskQuota must be given: it is the size of the storage");
  }
  EXPECT_TRUE(PlanSandbox({.storage = Storage::kDisk}, Enforcing()));
}

TEST(Storage, ThatIsNotToBeHadIsRefused) {  // C006
  Offer offer = Enforcing();
  offer.storage_loop = {.missing = {.reason = "loop devices take root", .remedy = "run as root"}};
  const SandboxOptions options{
      .disk_quota = 8_MiB, .degraded = {"diskQuota"}, .storage = Storage::kLoop};
  const Error refused = PlanSandbox(options, offer).error();
  EXPECT_EQ(refused.code, ErrorCode::kUnsupported) << "a kind of storage cannot be conceded";
  EXPECT_EQ(refused.field, "storage");
  EXPECT_EQ(refused.message, "storage cannot be enforced here: loop devices take root");
  EXPECT_EQ(refused.remedy, "run as root");
  offer.storage_loop = {};
  EXPECT_EQ(PlanSandbox(options, offer).error().remedy, "Use storage \"disk\".");
}

}  // namespace
}  // namespace palmshed::plan
