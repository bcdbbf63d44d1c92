#include "run/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/laps.h"
#include "base/loop.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// Every program of it ends as it was told.
class EndingSandbox final : public backends::BackendSandbox {
 public:
  EndingSandbox(Loop& loop, backends::ExecEnd end) : loop_(loop), end_(std::move(end)) {}

  void Kill() override {}
  Result<std::uint32_t> Start(const plan::ExecPlan&, backends::Stdio,
                              std::function<void(const backends::ExecEnd&)> ended) override {
    loop_.Post([this, ended = std::move(ended)] { ended(end_); });
    return 1U;
  }
  Result<void> Signal(std::uint32_t, int, bool) override { return {}; }
  Result<UniqueFd> OpenWorkspace() override { return UniqueFd(); }
  Result<std::vector<UniqueFd>> OpenTcpTables() override { return std::vector<UniqueFd>(); }
  std::optional<std::uint32_t> FileOwner() const override { return std::nullopt; }
  Result<void> Destroy(Laps&) override { return {}; }

 private:
  Loop& loop_;
  const backends::ExecEnd end_;
};

/// Everything that a sandbox of a plan is capable of.
plan::Offer FullOffer() {
  const plan::Offer::Limit kernel{.enforcement = plan::Enforcement::kKernel};
  return {.backend = "fake",
          .cpu_time = kernel,
          .cpu_quota = kernel,
          .memory = kernel,
          .pids = kernel,
          .disk = kernel};
}

class EventsOfLimits : public ::testing::Test {
 protected:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  /// The fields of each resource.enforced event of an execution that ends so.
  std::vector<Fields> EnforcedWhen(backends::ExecEnd end) {
    return EventsOf("resource.enforced", {.backend = "fake"}, {}, std::move(end));
  }
  /// The fields of the exec.start event of an execution with such options.
  Fields StartedWith(plan::SandboxPlan plan, ExecOptions options) {
    const auto started = EventsOf("exec.start", std::move(plan), std::move(options), {});
    EXPECT_EQ(started.size(), 1U);
    return started.empty() ? Fields{} : started.front();
  }

 private:
  /// The fields of each event of that name of one execution.
  std::vector<Fields> EventsOf(const std::string& name, plan::SandboxPlan plan, ExecOptions options,
                               backends::ExecEnd end) {
    std::mutex mu;
    std::vector<Fields> events;
    const auto sandbox = std::make_shared<SandboxState>(
        "sbx_01", SandboxState::Context{.loop = loop_.get(),
                                        .engine = {},
                                        .emit =
                                            [&](const Event& event) {
                                              const std::lock_guard lock(mu);
                                              if (event.name != name) return;
                                              EXPECT_EQ(event.sandbox, "sbx_01");
                                              EXPECT_THAT(event.execution,
                                                          ::testing::StartsWith("exec_"));
                                              events.push_back(event.fields);
                                            },
                                        .abandon = {},
                                        .capabilities = {},
                                        .gone = [](const std::string&) {}});
    end.kind = backends::ExecEnd::Kind::kExited;
    sandbox->Attach({.plan = std::move(plan),
                     .sandbox = std::make_unique<EndingSandbox>(*loop_, std::move(end))});
    const auto execution = sandbox->Start({.args = {"/x"}, .options = std::move(options)});
    EXPECT_TRUE(execution) << execution.error().message;
    EXPECT_TRUE(execution && (*execution)->WaitSettled(Millis(10'000)));
    const std::lock_guard lock(mu);
    return events;
  }

  std::unique_ptr<Loop> loop_ = *Loop::Create();
};

TEST_F(EventsOfLimits, StartNamesEachThatHolds) {
  const plan::SandboxPlan plan{.backend = "fake",
                               .timeout = Millis(9000),
                               .max_output = Bytes{7},
                               .ceilings = {.cpu_time = Millis(300),
                                            .cpu_quota = 1.5,
                                            .memory = Bytes{100},
                                            .pids = 8,
                                            .disk = Bytes{200}},
                               .offer = FullOffer()};
  EXPECT_THAT(StartedWith(plan, {}),
              ElementsAre(Pair("timeoutMs", "9000"), Pair("cpuTimeMs", "300"),
                          Pair("cpuQuota", "1.5"), Pair("memoryBytes", "100"), Pair("pids", "8"),
                          Pair("diskBytes", "200"), Pair("maxOutputBytes", "7")));
  EXPECT_THAT(StartedWith(plan, {.timeout = Millis(50), .cpu_quota = 0.5, .pids = 4}),
              ElementsAre(Pair("timeoutMs", "50"), Pair("cpuTimeMs", "300"),
                          Pair("cpuQuota", "0.5"), Pair("memoryBytes", "100"), Pair("pids", "4"),
                          Pair("diskBytes", "200"), Pair("maxOutputBytes", "7")));
}

TEST_F(EventsOfLimits, StartNamesNoneThatDoesNotHold) {
  EXPECT_THAT(StartedWith({.backend = "fake", .max_output = Bytes{7}}, {}),
              ElementsAre(Pair("maxOutputBytes", "7")));
  plan::SandboxPlan weaker{.backend = "fake",
                           .max_output = Bytes{7},
                           .ceilings = {.memory = Bytes{100}},
                           .degraded = {"memory"}};
  EXPECT_THAT(StartedWith(weaker, {}), ElementsAre(Pair("maxOutputBytes", "7")));
  weaker.offer = FullOffer();
  EXPECT_THAT(StartedWith(weaker, {}),
              ElementsAre(Pair("memoryBytes", "100"), Pair("maxOutputBytes", "7")));
}

TEST_F(EventsOfLimits, EachLimitThatEndsAnExecutionIsOne) {
  const auto hit = [](Cause cause) {
    return backends::ExecEnd{.hit =
                                 backends::LimitHit{.cause = cause, .limit = 100, .observed = 101}};
  };
  EXPECT_THAT(EnforcedWhen(hit(Cause::kCpuTime)),
              ElementsAre(ElementsAre(Pair("resource", "cpu"), Pair("limitMs", "100"),
                                      Pair("observedMs", "101"))));
  EXPECT_THAT(EnforcedWhen(hit(Cause::kMemory)),
              ElementsAre(ElementsAre(Pair("resource", "memory"), Pair("limitBytes", "100"),
                                      Pair("observedBytes", "101"))));
  EXPECT_THAT(EnforcedWhen(hit(Cause::kDisk)),
              ElementsAre(ElementsAre(Pair("resource", "disk"), Pair("limitBytes", "100"),
                                      Pair("observedBytes", "101"))));
  EXPECT_THAT(EnforcedWhen(hit(Cause::kPids)),
              ElementsAre(ElementsAre(Pair("resource", "pids"), Pair("limit", "100"),
                                      Pair("observed", "101"))));
}

TEST_F(EventsOfLimits, ForksThatWereRefusedAreOneThoughTheExecutionWentOn) {
  EXPECT_THAT(EnforcedWhen({.evidence = {{backends::kPidsRefused, 3}}}),
              ElementsAre(ElementsAre(Pair("resource", "pids"), Pair("refused", "3"))));
  const backends::ExecEnd ended_by_it{.hit = backends::LimitHit{.cause = Cause::kPids, .limit = 8},
                                      .evidence = {{backends::kPidsRefused, 3}}};
  EXPECT_EQ(EnforcedWhen(ended_by_it).size(), 1U) << "said once";
}

TEST_F(EventsOfLimits, AnExecutionThatMetNoneHasNone) {
  EXPECT_THAT(EnforcedWhen({}), IsEmpty());
  EXPECT_THAT(EnforcedWhen({.wait_status = 9}), IsEmpty());
  EXPECT_THAT(EnforcedWhen({.evidence = {{backends::kPidsRefused, 0}, {"oom_kill", 0}}}),
              IsEmpty());
}

}  // namespace
}  // namespace palmshed::run
