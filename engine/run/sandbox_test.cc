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
#include "base/loop.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
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
  Result<void> Destroy() override { return {}; }

 private:
  Loop& loop_;
  const backends::ExecEnd end_;
};

class EventsOfLimits : public ::testing::Test {
 protected:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  /// The fields of each resource.enforced event of an execution that ends so.
  std::vector<Fields> EnforcedWhen(backends::ExecEnd end) {
    std::mutex mu;
    std::vector<Fields> enforced;
    const auto sandbox = std::make_shared<SandboxState>(
        "sbx_01", SandboxState::Context{.loop = loop_.get(),
                                        .engine = {},
                                        .emit =
                                            [&](const Event& event) {
                                              const std::lock_guard lock(mu);
                                              if (event.name != "resource.enforced") return;
                                              EXPECT_EQ(event.sandbox, "sbx_01");
                                              EXPECT_THAT(event.execution,
                                                          ::testing::StartsWith("exec_"));
                                              enforced.push_back(event.fields);
                                            },
                                        .abandon = {},
                                        .capabilities = {},
                                        .gone = [](const std::string&) {}});
    end.kind = backends::ExecEnd::Kind::kExited;
    sandbox->Attach({.plan = {.backend = "fake"},
                     .sandbox = std::make_unique<EndingSandbox>(*loop_, std::move(end))});
    const auto execution = sandbox->Start({.args = {"/x"}});
    EXPECT_TRUE(execution) << execution.error().message;
    EXPECT_TRUE(execution && (*execution)->WaitSettled(Millis(10'000)));
    const std::lock_guard lock(mu);
    return enforced;
  }

  std::unique_ptr<Loop> loop_ = *Loop::Create();
};

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
