// Output while it comes, input while it is wanted, and callbacks that take their time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/eventually.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

using std::chrono::steady_clock;

class Streams : public KernelTest {};

std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(Streams, CursorReadsEverythingInPieces) {
  Sandbox sandbox = MakeSandbox();
  const Execution running = Must(sandbox.StartShell("seq 1 100000"));
  std::array<std::byte, 4099> piece;
  std::string all;
  while (const std::size_t size = Must(running.Read(Stream::kStdout, all.size(), piece))) {
    all += AsText(std::span(piece).first(size));
  }
  EXPECT_EQ(all, Must(running.Wait()).out.bytes);
  EXPECT_TRUE(all.ends_with("\n100000\n"));
  // Again, from the middle, after the end.
  EXPECT_EQ(Must(running.Read(Stream::kStdout, 2, std::span(piece).first(3))), 3U);
  EXPECT_EQ(AsText(std::span(piece).first(3)), "2\n3");
}

TEST_F(Streams, CursorWaitsForOutputAndNoLonger) {
  Sandbox sandbox = MakeSandbox();
  const Execution running = Must(sandbox.StartShell("read x; echo got", {.stdin_pipe = true}));
  std::array<std::byte, 64> piece;
  EXPECT_THAT(running.Read(Stream::kStdout, 0, piece, Millis(50)),
              FailsWith(ErrorCode::kOverloaded));
  Must(Execution(running).Write(AsBytes("\n")));
  EXPECT_EQ(Must(running.Read(Stream::kStdout, 0, piece)), 4U);
  EXPECT_EQ(Must(running.Read(Stream::kStdout, 4, piece)), 0U);
}

TEST_F(Streams, CursorBeforeWhatIsKeptIsRefused) {
  Sandbox sandbox = MakeSandbox();
  const Execution running =
      Must(sandbox.StartShell("head -c 4000000 /dev/zero", {.max_output = 64_KiB}));
  Must(running.Wait());
  std::array<std::byte, 64> piece;
  EXPECT_THAT(running.Read(Stream::kStdout, 0, piece), FailsWith(ErrorCode::kInvalidOptions));
  EXPECT_EQ(Must(running.Read(Stream::kStdout, 4'000'000 - 10, piece)), 10U);
}

TEST_F(Streams, InputPipeCarriesAConversation) {
  Sandbox sandbox = MakeSandbox();
  Execution cat = Must(sandbox.Start({"cat"}, {.stdin_pipe = true}));
  Must(cat.Write(AsBytes("one ")));
  EXPECT_TRUE(AwaitOutput(cat, "one "));
  Must(cat.Write(AsBytes("two")));
  Must(cat.CloseStdin());
  Must(cat.CloseStdin());
  EXPECT_THAT(Must(cat.Wait()), ExitedWith(0, "one two"));
  EXPECT_THAT(cat.Write(AsBytes("x")), FailsWith(ErrorCode::kConflict));
}

TEST_F(Streams, LargeInputArrivesWhole) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox, "wc -c", {.stdin_bytes = std::string(15'000'000, 'x')}),
              ExitedWith(0, "15000000\n"));
}

TEST_F(Streams, InputIsBoundedWhenNobodyReads) {
  Sandbox sandbox = MakeSandbox();
  Execution running = Must(sandbox.Start({"./probe", "stay"}, {.stdin_pipe = true}));
  const std::vector<std::byte> mebibyte(1 << 20);
  Result<void> written;
  int accepted = 0;
  for (; accepted < 40 && (written = running.Write(mebibyte)); ++accepted) {
  }
  EXPECT_THAT(written, FailsWith(ErrorCode::kOverloaded));
  EXPECT_GE(accepted, 16);
  EXPECT_LE(accepted, 18);
  Must(running.Cancel());
}

TEST_F(Streams, InputWithoutAPipeIsAConflict) {
  Sandbox sandbox = MakeSandbox();
  Execution running = Must(sandbox.Start({"./probe", "stay"}));
  EXPECT_THAT(running.Write(AsBytes("x")), FailsWith(ErrorCode::kConflict));
  EXPECT_THAT(running.Resize({}), FailsWith(ErrorCode::kConflict));
  Must(running.Cancel());
}

TEST_F(Streams, CallbackSeesEverythingInOrderBeforeTheEnd) {
  Sandbox sandbox = MakeSandbox();
  std::string out, err;
  const ExecResult run =
      ExecShell(sandbox, "seq 1 200000; echo error >&2",
                {.on_output = [&](Stream stream, std::span<const std::byte> bytes) {
                  (stream == Stream::kStdout ? out : err) += AsText(bytes);
                }});
  EXPECT_EQ(out, run.out.bytes);
  EXPECT_TRUE(out.ends_with("\n200000\n"));
  EXPECT_EQ(err, "error\n");
}

// Slow is one execution's own affair.
TEST_F(Streams, SlowCallbackHoldsUpNobodyElse) {
  Sandbox sandbox = MakeSandbox();
  std::binary_semaphore blocked(0), go_on(0);
  std::atomic<bool> first = true;
  const Execution slow = Must(sandbox.StartShell(
      "yes | head -c 8000000", {.on_output = [&](Stream, std::span<const std::byte>) {
        if (!first.exchange(false)) return;
        blocked.release();
        go_on.acquire();
      }}));
  blocked.acquire();
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(ExecShell(sandbox, "echo quick"), ExitedWith(0, "quick\n"));
  }
  EXPECT_FALSE(slow.WaitFor(Millis(0)));
  go_on.release();
  EXPECT_EQ(Must(slow.Wait()).out.total, 8'000'000U);
}

TEST_F(Streams, TimeoutFiresWhileACallbackBlocks) {
  Sandbox sandbox = MakeSandbox();
  const std::string name = UniqueName();
  AddProbe(sandbox, name);
  std::binary_semaphore go_on(0);
  std::atomic<bool> first = true;
  const Execution running = Must(
      sandbox.Start({"./" + name, "stay"},
                    {.timeout = Millis(200), .on_output = [&](Stream, std::span<const std::byte>) {
                       if (first.exchange(false)) go_on.acquire();
                     }}));
  EXPECT_TRUE(Eventually([&] { return !FindProcesses(name).empty(); }));
  EXPECT_TRUE(Eventually([&] { return FindProcesses(name).empty(); }, std::chrono::seconds(2)));
  go_on.release();
  EXPECT_THAT(Must(running.Wait()), EndedBy(Cause::kWallTimeout));
}

TEST_F(Streams, WaitInsideACallbackIsAConflict) {
  Sandbox sandbox = MakeSandbox();
  std::optional<Execution> self;
  std::binary_semaphore made(0);
  std::optional<ErrorCode> answer;
  self = Must(sandbox.StartShell("echo x", {.on_output = [&](Stream, std::span<const std::byte>) {
                                   made.acquire();
                                   const auto waited = self->Wait();
                                   if (!waited) answer = waited.error().code;
                                 }}));
  made.release();
  EXPECT_THAT(Must(self->Wait()), ExitedWith(0, "x\n"));
  EXPECT_EQ(answer, ErrorCode::kConflict);
}

TEST_F(Streams, CallbackMayCancel) {
  Sandbox sandbox = MakeSandbox();
  std::optional<Execution> self;
  std::binary_semaphore made(0);
  self = Must(
      sandbox.Start({"./probe", "stay"}, {.on_output = [&](Stream, std::span<const std::byte>) {
                      made.acquire();
                      (void)self->Cancel();
                    }}));
  made.release();
  EXPECT_EQ(Must(self->Wait()).status, Status::kCancelled);
}

TEST_F(Streams, ReadyDescriptorTellsTheEnd) {
  Sandbox sandbox = MakeSandbox();
  const Execution running = Must(sandbox.StartShell("read x", {.stdin_pipe = true}));
  pollfd ready{.fd = running.ready_fd(), .events = POLLIN, .revents = 0};
  ASSERT_GE(ready.fd, 0);
  EXPECT_EQ(::poll(&ready, 1, 50), 0);
  Must(Execution(running).CloseStdin());
  EXPECT_EQ(::poll(&ready, 1, 10'000), 1);
  EXPECT_TRUE(running.result());
  EXPECT_EQ(::poll(&ready, 1, 0), 1) << "it stays readable";
  const Execution ended = Must(sandbox.Start({"true"}));
  Must(ended.Wait());
  pollfd late{.fd = ended.ready_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&late, 1, 0), 1) << "asked for after the end";
}

TEST_F(Streams, DestroyEndsStreamsInProgress) {
  Sandbox sandbox = MakeSandbox();
  const Execution running = Must(sandbox.StartShell("yes"));
  ASSERT_TRUE(AwaitOutput(running, "y\n"));
  std::uint64_t cursor = 0;
  std::jthread reader([&] {
    std::vector<std::byte> piece(1 << 16);
    while (true) {
      const auto size = running.Read(Stream::kStdout, cursor, piece);
      if (!size) {  // Overtaken by what is no longer kept: go on at the end.
        cursor = running.out().total;
        continue;
      }
      if (*size == 0) return;
      cursor += *size;
    }
  });
  ASSERT_TRUE(Eventually([&] { return running.out().total > 1'000'000; }));
  Must(sandbox.Destroy());
  reader.join();
  const ExecResult result = Must(running.Wait());
  EXPECT_EQ(result.status, Status::kCancelled);
  EXPECT_EQ(cursor, result.out.total);
}

TEST_F(Streams, MetadataIsLive) {
  Sandbox sandbox = MakeSandbox();
  Execution running = Must(sandbox.Start({"./probe", "stay"}));
  ASSERT_TRUE(AwaitOutput(running, "ready"));
  EXPECT_EQ(running.status(), Status::kRunning);
  EXPECT_EQ(running.exit_code(), -1);
  EXPECT_FALSE(running.metadata().finished_at);
  EXPECT_EQ(running.out().bytes, "ready\n");
  const Millis duration = running.duration();
  EXPECT_TRUE(Eventually([&] { return running.duration() > duration; }));
  EXPECT_FALSE(running.WaitFor(Millis(20)));
  Must(running.Signal(9));
  const ExecResult result = Must(running.Wait());
  EXPECT_EQ(running.metadata().signal, 9);
  EXPECT_EQ(running.metadata().spec_version, kSpecVersion);
  EXPECT_TRUE(running.metadata().finished_at);
  EXPECT_GE(result.duration, duration);
  EXPECT_EQ(running.duration(), result.duration);
}

}  // namespace
}  // namespace palmshed::tests
