#include "run/selftest_limits.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/laps.h"
#include "base/loop.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "run/sandbox.h"
#include "workspace/test_tree.h"

namespace palmshed::run {
namespace {

using plan::Enforcement;
using plan::Offer;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// kBusy: it enforces, and has so much else to do that nobody gets much CPU time.
enum class Host : std::uint8_t { kEnforces, kIgnores, kEndsEverything, kBusy };

/// Does as the probe would on a host of a kind, without running anything.
class ModelSandbox final : public backends::BackendSandbox {
 public:
  ModelSandbox(Loop& loop, Host host, std::string workspace)
      : loop_(loop), host_(host), workspace_(std::move(workspace)) {}

  void Kill() override {}
  Result<std::uint32_t> Start(const plan::ExecPlan& plan, backends::Stdio stdio,
                              std::function<void(const backends::ExecEnd&)> ended) override {
    const std::string_view role = plan.argv.at(2);
    const std::uint64_t amount = std::strtoull(plan.argv.at(3).c_str(), nullptr, 10);
    backends::ExecEnd end;
    if (role == "memory") end = Use(Cause::kMemory, amount, Count(plan.limits.memory), stdio);
    if (role == "forks") end = Fork(amount, plan.limits.pids, stdio);
    if (role == "write") end = Use(Cause::kDisk, amount, Count(plan.limits.disk), stdio);
    if (role == "cpu") end = Compute(plan, amount, stdio);
    loop_.Post([end, ended = std::move(ended)] { ended(end); });
    return ++executions_;
  }
  Result<void> Signal(std::uint32_t, int, bool) override { return {}; }
  Result<UniqueFd> OpenWorkspace() override { return sys::Open(workspace_, O_DIRECTORY | O_PATH); }
  Result<std::vector<UniqueFd>> OpenTcpTables() override { return std::vector<UniqueFd>(); }
  std::optional<std::uint32_t> FileOwner() const override { return std::nullopt; }
  Result<void> Destroy(Laps&) override { return {}; }

 private:
  static backends::ExecEnd Exit(int code) {
    return {.kind = backends::ExecEnd::Kind::kExited, .wait_status = code << 8};
  }
  static void Report(const backends::Stdio& stdio, std::string_view name, std::uint64_t number) {
    const std::string line = std::string(name) + " " + std::to_string(number) + "\n";
    ASSERT_TRUE(sys::WriteAll(stdio.out.get(), std::as_bytes(std::span(line))));
  }
  bool Stops(std::uint64_t amount, std::uint64_t limit) const {
    if (limit == 0 || host_ == Host::kIgnores) return false;
    return amount > limit || host_ == Host::kEndsEverything;
  }
  backends::ExecEnd Use(Cause cause, std::uint64_t amount, std::uint64_t limit,
                        const backends::Stdio& stdio) const {
    if (!Stops(amount, limit)) {
      Report(stdio, "used", 0);
      return Exit(0);
    }
    return {.kind = backends::ExecEnd::Kind::kExited,
            .wait_status = 9,
            .hit = backends::LimitHit{.cause = cause, .limit = limit, .observed = limit}};
  }
  backends::ExecEnd Fork(std::uint64_t amount, std::uint64_t limit,
                         const backends::Stdio& stdio) const {
    const bool refused = Stops(amount, limit);
    Report(stdio, "fork", refused ? EAGAIN : 0);
    return Exit(refused ? 1 : 0);
  }
  backends::ExecEnd Compute(const plan::ExecPlan& plan, std::uint64_t amount,
                            const backends::Stdio& stdio) const {
    if (amount != 0) {
      const auto limit = static_cast<std::uint64_t>(plan.limits.cpu_time.count());
      return Use(Cause::kCpuTime, amount, limit, stdio);
    }
    const std::uint64_t window = std::strtoull(plan.argv.at(4).c_str(), nullptr, 10);
    const bool throttled = plan.limits.cpu_quota > 0 && host_ != Host::kIgnores;
    const bool slow = host_ == Host::kEndsEverything || host_ == Host::kBusy;
    Report(stdio, "cpu_ms", throttled || slow ? window / 10 : window);
    backends::ExecEnd end = Exit(0);
    if (host_ == Host::kBusy && throttled) end.evidence.emplace_back(backends::kThrottledMs, 90);
    return end;
  }

  Loop& loop_;
  const Host host_;
  const std::string workspace_;
  std::uint32_t executions_ = 0;
};

const Offer::Limit kKernel{.enforcement = Enforcement::kKernel};

Offer OfferOf(Offer::Limit limit) {
  return {.backend = "model",
          .private_view = true,
          .network_disabled = true,
          .fresh_proc = true,
          .search_path = {"/usr/bin"},
          .cpu_time = limit,
          .cpu_quota = limit,
          .memory = limit,
          .pids = limit,
          .disk = limit,
          .storage_memory = limit,
          .storage_loop = limit};
}

class SelfTestOfLimits : public ::testing::Test {
 protected:
  std::shared_ptr<SandboxState> Make(Host host, const Offer& offer,
                                     const SandboxOptions& options = {}) {
    auto sandbox = std::make_shared<SandboxState>(
        "sbx_01", SandboxState::Context{.loop = loop_.get(),
                                        .engine = {},
                                        .emit = [](const Event&) {},
                                        .abandon = {},
                                        .capabilities = {},
                                        .gone = [](const std::string&) {}});
    auto plan = plan::PlanSandbox(options, offer);
    EXPECT_TRUE(plan) << plan.error().message;
    sandbox->Attach({.plan = *std::move(plan),
                     .sandbox = std::make_unique<ModelSandbox>(*loop_, host, tree_.path())});
    return sandbox;
  }
  std::vector<Control> Test(Host host, const Offer& offer) {
    std::vector<Control> controls = TestLimits(*Make(host, offer), offer);
    const MakeStorage make = [&](Bytes quota,
                                 Storage storage) -> Result<std::shared_ptr<SandboxState>> {
      return Make(host, offer, {.disk_quota = quota, .storage = storage});
    };
    for (Control& control : TestStorage(make, offer, {})) controls.push_back(std::move(control));
    return controls;
  }

  std::unique_ptr<Loop> loop_ = *Loop::Create();
  workspace::TestTree tree_;
};

TEST_F(SelfTestOfLimits, SeesLimitsThatAreEnforced) {
  const auto controls = Test(Host::kEnforces, OfferOf(kKernel));
  std::vector<std::string> names;
  for (const Control& control : controls) names.push_back(control.name);
  EXPECT_THAT(names, ElementsAre("memory", "pids", "cpuTimeLimit", "cpuQuota", "diskQuota",
                                 "storage.memory", "storage.loop"));
  for (const Control& control : controls) {
    EXPECT_TRUE(control.works) << control.name << ": " << control.detail;
    EXPECT_EQ(control.mechanism, "kernel");
  }
}

TEST_F(SelfTestOfLimits, TakesTheKernelsWordForAQuotaOnABusyMachine) {
  const auto controls = Test(Host::kBusy, OfferOf(kKernel));
  EXPECT_THAT(controls, Each(Field(&Control::works, true)));
}

TEST_F(SelfTestOfLimits, SeesThroughLimitsThatAreNotEnforced) {  // C006
  for (const Control& control : Test(Host::kIgnores, OfferOf(kKernel))) {
    EXPECT_FALSE(control.works) << control.name << ": " << control.detail;
    EXPECT_FALSE(control.lost.empty());
  }
}

TEST_F(SelfTestOfLimits, SeesThroughLimitsThatNothingCanKeep) {
  for (const Control& control : Test(Host::kEndsEverything, OfferOf(kKernel))) {
    EXPECT_FALSE(control.works) << control.name << ": " << control.detail;
  }
}

TEST_F(SelfTestOfLimits, SaysWhyALimitIsNotOffered) {
  const Offer offer = OfferOf({.missing = {.reason = "no cgroup", .remedy = "make one"}});
  const auto controls = Test(Host::kEnforces, offer);
  EXPECT_THAT(controls, Each(Field(&Control::works, false)));
  EXPECT_THAT(controls, Each(Field(&Control::detail, "not offered: no cgroup")));
  EXPECT_THAT(controls, Each(Field(&Control::remedy, "make one")));
  EXPECT_THAT(Test(Host::kEnforces, OfferOf({})),
              Each(Field(&Control::detail, HasSubstr("nothing on this host enforces it"))));
}

TEST_F(SelfTestOfLimits, GivesTheReasonWhenNoStorageCouldBeMade) {
  const MakeStorage make = [](Bytes, Storage) -> Result<std::shared_ptr<SandboxState>> {
    return std::unexpected(Error{.message = "no loop device", .remedy = "modprobe loop"});
  };
  const auto controls = TestStorage(make, OfferOf(kKernel), {});
  EXPECT_THAT(controls, Each(Field(&Control::works, false)));
  EXPECT_THAT(controls, Each(Field(&Control::detail, "no loop device")));
  EXPECT_THAT(controls, Each(Field(&Control::remedy, "modprobe loop")));
}

TEST_F(SelfTestOfLimits, EveryFlagFollowsFromItsTest) {
  Offer offer = OfferOf(kKernel);
  offer.memory.enforcement = Enforcement::kSampled;
  Capabilities all{.filesystem = true, .controls = Test(Host::kEnforces, offer)};
  SetLimitFlags(offer, all);
  EXPECT_TRUE(all.memory_limits && all.pids_limits && all.cpu_limits && all.cpu_quota_limits &&
              all.disk_quota);
  EXPECT_EQ(all.memory_enforcement, "sampled");
  EXPECT_EQ(all.cpu_time_enforcement, "kernel");
  EXPECT_EQ(all.pids_scope, "execution");
  EXPECT_THAT(all.storage, ElementsAre(Storage::kDisk, Storage::kMemory, Storage::kLoop));
  offer.pids_of_sandbox = true;
  SetLimitFlags(offer, all);
  EXPECT_EQ(all.pids_scope, "sandbox");
}

TEST_F(SelfTestOfLimits, NoFlagIsTrueForWhatIsOnlyOffered) {
  const Offer offer = OfferOf(kKernel);
  Capabilities none{.controls = Test(Host::kIgnores, offer)};
  SetLimitFlags(offer, none);
  EXPECT_FALSE(none.memory_limits || none.pids_limits || none.cpu_limits || none.cpu_quota_limits ||
               none.disk_quota);
  EXPECT_EQ(none.memory_enforcement, "");
  EXPECT_EQ(none.cpu_time_enforcement, "");
  EXPECT_EQ(none.pids_scope, "");
  EXPECT_THAT(none.storage, IsEmpty());
  Capabilities untested;
  NoteUntested(Error{.message = "no namespaces"}, untested.controls);
  SetLimitFlags(offer, untested);
  EXPECT_EQ(untested.controls.size(), 7U);
  EXPECT_THAT(untested.controls, Each(Field(&Control::works, false)));
  EXPECT_FALSE(untested.memory_limits);
}

}  // namespace
}  // namespace palmshed::run
