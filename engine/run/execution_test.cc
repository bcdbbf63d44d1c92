#include "run/execution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
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
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::run {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

/// A backend whose programs do what the test says.
class FakeSandbox final : public backends::BackendSandbox {
 public:
  explicit FakeSandbox(Loop& loop) : loop_(loop) {}

  void Kill() override {}
  Result<std::uint32_t> Start(const plan::ExecPlan&, backends::Stdio stdio,
                              std::function<void(const backends::ExecEnd&)> ended) override {
    stdio_ = std::move(stdio);
    ended_ = std::move(ended);
    return 1U;
  }
  Result<void> Signal(std::uint32_t, int signal, bool all) override {
    const std::lock_guard lock(mu_);
    signals_.emplace_back(signal, all);
    if (on_signal_) on_signal_(signal);
    return {};
  }
  Result<UniqueFd> OpenWorkspace() override { return UniqueFd(); }
  Result<std::vector<UniqueFd>> OpenTcpTables() override { return std::vector<UniqueFd>(); }
  std::optional<std::uint32_t> FileOwner() const override { return std::nullopt; }
  Result<void> Destroy(Laps&) override { return {}; }

  void Print(Stream stream, std::string_view text) {
    const UniqueFd& fd = stream == Stream::kStdout ? stdio_.out : stdio_.err;
    ASSERT_TRUE(sys::WriteAll(fd.get(), std::as_bytes(std::span(text))).has_value());
  }
  void Exit(int code) { End({.kind = backends::ExecEnd::Kind::kExited, .wait_status = code << 8}); }
  void Detach(int code) {
    End({.kind = backends::ExecEnd::Kind::kExited, .wait_status = code << 8, .detached = true});
  }
  void End(backends::ExecEnd end) {
    loop_.Post([this, end] { ended_(end); });
  }
  void OnSignal(std::function<void(int)> on_signal) { on_signal_ = std::move(on_signal); }
  std::vector<std::pair<int, bool>> signals() {
    const std::lock_guard lock(mu_);
    return signals_;
  }

 private:
  Loop& loop_;
  backends::Stdio stdio_;
  std::function<void(const backends::ExecEnd&)> ended_;
  std::mutex mu_;
  std::vector<std::pair<int, bool>> signals_;
  std::function<void(int)> on_signal_;
};

class ExecutionTest : public ::testing::Test {
 protected:
  ExecutionTest() : loop_(*Loop::Create()), sandbox_(std::make_shared<FakeSandbox>(*loop_)) {}
  /// The loop may still be on its way out of a callback that the sandbox holds.
  ~ExecutionTest() override {
    loop_->Run([] {});
  }

  std::shared_ptr<ExecutionState> Start(Millis timeout = Millis(0), ExecOptions options = {}) {
    const plan::ExecPlan plan{.argv = {"x"}, .timeout = timeout};
    auto started = ExecutionState::Start(
        {.loop = loop_.get(), .sandbox = sandbox_, .backend = "fake"}, plan, options);
    EXPECT_TRUE(started.has_value());
    return *started;
  }
  static ExecResult Wait(const ExecutionState& execution) {
    EXPECT_TRUE(execution.WaitSettled(Millis(10'000)));
    return execution.result().value_or(ExecResult{});
  }

  std::unique_ptr<Loop> loop_;
  std::shared_ptr<FakeSandbox> sandbox_;
};

TEST_F(ExecutionTest, CollectsOutputAndExitCode) {
  const auto execution = Start();
  sandbox_->Print(Stream::kStdout, "out");
  sandbox_->Print(Stream::kStderr, "err");
  sandbox_->Exit(3);
  const ExecResult result = Wait(*execution);
  EXPECT_EQ(result.status, Status::kFailed);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.termination.cause, Cause::kExited);
  EXPECT_EQ(result.out.bytes, "out");
  EXPECT_EQ(result.err.bytes, "err");
}

TEST_F(ExecutionTest, DoesNotWaitForAPipeThatSomebodyHolds) {
  // C001: the fake keeps its ends open.
  const auto execution = Start();
  sandbox_->Print(Stream::kStdout, "all of it");
  sandbox_->Exit(0);
  EXPECT_EQ(Wait(*execution).out.bytes, "all of it");
}

TEST_F(ExecutionTest, ASignalIsNotAnExitCode) {
  // C012 (b): 128 + n, with the signal beside it.
  const auto execution = Start();
  sandbox_->End({.kind = backends::ExecEnd::Kind::kExited, .wait_status = SIGSEGV});
  const ExecResult result = Wait(*execution);
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(result.termination.cause, Cause::kSignaled);
  EXPECT_EQ(result.termination.signal, SIGSEGV);
}

TEST_F(ExecutionTest, TheDeadlineKillsEverything) {
  sandbox_->OnSignal([this](int signal) {
    sandbox_->End({.kind = backends::ExecEnd::Kind::kExited, .wait_status = signal});
  });
  const auto execution = Start(Millis(20));
  sandbox_->Print(Stream::kStdout, "so far");  // C054
  const ExecResult result = Wait(*execution);
  EXPECT_EQ(result.status, Status::kTimedOut);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_EQ(result.termination.cause, Cause::kWallTimeout);
  EXPECT_EQ(result.termination.limit, 20U);
  EXPECT_EQ(result.out.bytes, "so far");
  EXPECT_THAT(sandbox_->signals(), ElementsAre(Pair(SIGKILL, true)));
  EXPECT_THAT(result.termination.evidence, ElementsAre(Pair("signal", SIGKILL)));
}

TEST_F(ExecutionTest, TheLongestTimesDoNotOverflow) {
  // C053
  constexpr Millis kLongest{std::int64_t{1} << 53};
  const auto execution = Start(kLongest);
  sandbox_->Exit(0);
  EXPECT_TRUE(execution->WaitSettled(kLongest));
  EXPECT_EQ(execution->status(), Status::kCompleted);
}

TEST_F(ExecutionTest, WhatIsDetachedPrintsOnAndTheResultStays) {
  const auto execution = Start();
  sandbox_->Print(Stream::kStdout, "first");
  sandbox_->Detach(3);
  const ExecResult result = Wait(*execution);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out.bytes, "first");
  sandbox_->Print(Stream::kStdout, "later");
  std::array<std::byte, 5> later{};
  EXPECT_EQ(execution->output(Stream::kStdout).Read(5, later, std::nullopt).value_or(0), 5U);
  EXPECT_EQ(execution->result().value().out.bytes, "first");
  EXPECT_EQ(execution->Signal(SIGTERM).error().code, ErrorCode::kConflict);
  sandbox_->Exit(3);
  EXPECT_EQ(execution->output(Stream::kStdout).Read(10, later, std::nullopt).value_or(1), 0U);
  EXPECT_EQ(execution->result().value().out.bytes, "first");
}

TEST_F(ExecutionTest, WhatIsDetachedIsReadThoughNobodyListensAnyMore) {
  std::atomic<std::size_t> heard = 0;
  const auto execution =
      Start(Millis(0),
            {.on_output = [&](Stream, std::span<const std::byte> got) { heard += got.size(); }});
  sandbox_->Print(Stream::kStdout, "first");
  sandbox_->Detach(0);
  (void)Wait(*execution);
  const std::string much(std::size_t{8} << 20, 'x');
  sandbox_->Print(Stream::kStdout, much);  // Would block for ever.
  sandbox_->Exit(0);
  std::array<std::byte, 1> none{};
  const std::uint64_t end = much.size() + 5;
  EXPECT_EQ(execution->output(Stream::kStdout).Read(end, none, std::nullopt).value_or(1), 0U);
  EXPECT_EQ(heard, 5U);
}

TEST_F(ExecutionTest, NothingIsDetachedOnceItIsCancelled) {
  const auto execution = Start();
  execution->Cancel();
  sandbox_->Detach(0);
  loop_->Run([] {});
  EXPECT_EQ(execution->status(), Status::kRunning);
  sandbox_->Exit(0);
  EXPECT_EQ(Wait(*execution).status, Status::kCancelled);
}

TEST_F(ExecutionTest, LimitThatEndsWhatIsDetachedIsTold) {
  std::promise<Cause> told;
  const plan::ExecPlan plan{.argv = {"x"}};
  const auto execution = *ExecutionState::Start(
      {.loop = loop_.get(),
       .sandbox = sandbox_,
       .backend = "fake",
       .detached_gone = [&](const std::string&,
                            const Termination& why) { told.set_value(why.cause); }},
      plan, {});
  sandbox_->Detach(0);
  EXPECT_EQ(Wait(*execution).termination.cause, Cause::kExited);
  sandbox_->End({.kind = backends::ExecEnd::Kind::kExited,
                 .hit = backends::LimitHit{.cause = Cause::kMemory, .limit = 1, .observed = 1}});
  EXPECT_EQ(told.get_future().get(), Cause::kMemory);
  EXPECT_EQ(execution->result().value().termination.cause, Cause::kExited);
}

TEST_F(ExecutionTest, CancelTerminatesThenKills) {
  // C072: SIGTERM is ignored.
  sandbox_->OnSignal([this](int signal) {
    if (signal != SIGKILL) return;
    sandbox_->End({.kind = backends::ExecEnd::Kind::kExited, .wait_status = signal});
  });
  const auto execution = Start();
  execution->Cancel();
  execution->Cancel();
  const ExecResult result = Wait(*execution);
  EXPECT_EQ(result.status, Status::kCancelled);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_THAT(sandbox_->signals(), ElementsAre(Pair(SIGTERM, true), Pair(SIGKILL, true)));
}

TEST_F(ExecutionTest, TheFirstVerdictStands) {
  const auto execution = Start();
  sandbox_->Exit(0);
  EXPECT_EQ(Wait(*execution).status, Status::kCompleted);
  execution->Cancel();
  EXPECT_EQ(execution->status(), Status::kCompleted);
  EXPECT_EQ(execution->Signal(SIGUSR1).error().code, ErrorCode::kConflict);
}

TEST_F(ExecutionTest, ALostBackendIsNeverASuccess) {
  // C021
  const auto execution = Start();
  sandbox_->End({.kind = backends::ExecEnd::Kind::kLost});
  const ExecResult result = Wait(*execution);
  EXPECT_EQ(result.status, Status::kFailed);
  EXPECT_EQ(result.exit_code, -1);
  EXPECT_EQ(result.error_code(), "BACKEND_LOST");
}

TEST_F(ExecutionTest, CallbacksSeeEverythingBeforeTheEnd) {
  std::string seen;
  const auto execution = Start(Millis(0), {.on_output = [&](Stream, std::span<const std::byte> b) {
                                 seen.append(reinterpret_cast<const char*>(b.data()), b.size());
                               }});
  sandbox_->Print(Stream::kStdout, std::string(50'000, 'x'));
  sandbox_->Exit(0);
  (void)Wait(*execution);
  EXPECT_EQ(seen, std::string(50'000, 'x'));
}

TEST_F(ExecutionTest, ABlockedCallbackHoldsUpTheProgramNotTheDeadline) {
  sandbox_->OnSignal([this](int signal) {
    sandbox_->End({.kind = backends::ExecEnd::Kind::kExited, .wait_status = signal});
  });
  std::promise<void> go;
  std::shared_future<void> gate = go.get_future().share();
  std::atomic<std::uint64_t> seen = 0;
  const auto execution =
      Start(Millis(100), {.on_output = [&, gate](Stream, std::span<const std::byte> b) {
              gate.wait();
              seen += b.size();
            }});
  sandbox_->Print(Stream::kStdout, std::string(60'000, 'x'));
  while (sandbox_->signals().empty()) std::this_thread::yield();
  EXPECT_EQ(execution->status(), Status::kRunning);  // Not all has been delivered.
  go.set_value();
  EXPECT_EQ(Wait(*execution).status, Status::kTimedOut);
  EXPECT_EQ(seen, 60'000U);
}

TEST_F(ExecutionTest, KnowsItsOwnThreads) {
  std::atomic<bool> own = false;
  std::weak_ptr<ExecutionState> handle;
  std::promise<void> ready;
  const auto execution = Start(Millis(0), {.on_output = [&](Stream, std::span<const std::byte>) {
                                 ready.get_future().wait();
                                 own = handle.lock()->OnOwnThread();
                               }});
  handle = execution;
  ready.set_value();
  sandbox_->Print(Stream::kStdout, "x");
  sandbox_->Exit(0);
  (void)Wait(*execution);
  EXPECT_TRUE(own);
  EXPECT_FALSE(execution->OnOwnThread());
}

TEST_F(ExecutionTest, TheReadyDescriptorTurnsReadableAtTheEnd) {
  const auto execution = Start();
  const int fd = execution->ready_fd();
  EXPECT_FALSE(*sys::WaitReadable(fd, 0));
  sandbox_->Exit(0);
  EXPECT_TRUE(*sys::WaitReadable(fd, 10'000));
  (void)Wait(*execution);
}

}  // namespace
}  // namespace palmshed::run
