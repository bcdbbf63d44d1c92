// Waiting until a program is ready.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "palmshed/palmshed.h"
#include "support/host_listener.h"
#include "support/kernel_test.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kLong{30};
constexpr std::uint16_t kPort = 8080;

/// Listens as soon as it is told, then says whether anybody has connected.
constexpr char kServer[] = R"(
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = socket.socket(family)
server.bind((sys.argv[1], 8080))
print("bound", flush=True)
sys.stdin.readline()
server.listen()
sys.stdin.readline()
server.setblocking(False)
try:
    server.accept()
    print("touched")
except BlockingIOError:
    print("untouched")
)";

class Readiness : public KernelTest {
 protected:
  static Execution StartServer(Sandbox& sandbox, const std::string& address) {
    Execution server =
        Must(sandbox.Start({"python3", "-c", kServer, address}, {.stdin_pipe = true}));
    Must(server.WaitForOutput(Stream::kStdout, "bound\n", kLong));
    return server;
  }
  static void Tell(Execution& server) { Must(server.Write(std::as_bytes(std::span("\n", 1)))); }
};

TEST_F(Readiness, PortIsSeenWithoutBeingTouched) {
  for (const char* address : {"127.0.0.1", "0.0.0.0", "::1", "::"}) {
    Sandbox sandbox = MakeSandbox();
    Execution server = StartServer(sandbox, address);
    // The control: bound, but nobody listens yet.
    EXPECT_THAT(server.WaitForPort(kPort, Millis(0)), FailsWith(ErrorCode::kOverloaded));
    Tell(server);
    EXPECT_THAT(server.WaitForPort(kPort, kLong), Succeeds()) << address;
    EXPECT_THAT(sandbox.WaitForPort(kPort, kLong), Succeeds()) << address;
    EXPECT_THAT(sandbox.WaitForPort(kPort + 1, Millis(0)), FailsWith(ErrorCode::kOverloaded));
    Tell(server);
    EXPECT_THAT(Must(server.Wait()), ExitedWith(0, "bound\nuntouched\n"));
    EXPECT_THAT(server.WaitForPort(kPort, kLong), FailsWith(ErrorCode::kConflict));
    EXPECT_THAT(sandbox.WaitForPort(kPort, Millis(0)), FailsWith(ErrorCode::kOverloaded));
  }
}

TEST_F(Readiness, PortsOfTheHostAndOfOtherSandboxesAreNotSeen) {
  const auto listener = HostListener::Tcp();
  const auto port = static_cast<std::uint16_t>(std::stoi(listener->where()));
  Sandbox sandbox = MakeSandbox();
  Sandbox other = MakeSandbox();
  Execution server = StartServer(other, "127.0.0.1");
  Tell(server);
  Must(other.WaitForPort(kPort, kLong));
  EXPECT_THAT(sandbox.WaitForPort(kPort, Millis(20)), FailsWith(ErrorCode::kOverloaded));
  EXPECT_THAT(sandbox.WaitForPort(port, Millis(20)), FailsWith(ErrorCode::kOverloaded));
  EXPECT_EQ(listener->hits(), 0);
}

TEST_F(Readiness, WaitForAPortEndsWithWhatItWaitsFor) {
  Sandbox sandbox = MakeSandbox();
  Execution program = Must(sandbox.Start({"cat"}, {.stdin_pipe = true}));
  const auto wait = [&](auto& of) {
    return std::async(std::launch::async, [&] { return of.WaitForPort(kPort, kLong); });
  };
  auto of_execution = wait(program);
  Must(program.CloseStdin());
  EXPECT_THAT(of_execution.get(), FailsWith(ErrorCode::kConflict));
  std::stop_source stop;
  auto stopped = std::async(std::launch::async,
                            [&] { return sandbox.WaitForPort(kPort, kLong, stop.get_token()); });
  stop.request_stop();
  EXPECT_THAT(stopped.get(), FailsWith(ErrorCode::kConflict));
  auto of_sandbox = wait(sandbox);
  Must(sandbox.Destroy());
  EXPECT_THAT(of_sandbox.get(), FailsWith(ErrorCode::kBackendLost));
  EXPECT_THAT(sandbox.WaitForPort(0, kLong), FailsWith(ErrorCode::kInvalidOptions));
}

TEST_F(Readiness, PortsOfASharedNetworkAreNotLookedAt) {
  Sandbox sandbox = MakeSandbox({.network = palmshed::Network::kAllow});
  const auto refused = sandbox.WaitForPort(kPort, kLong);
  ASSERT_THAT(refused, FailsWith(ErrorCode::kUnsupported));
  EXPECT_THAT(refused.error().message, HasSubstr("network of its own"));
}

TEST_F(Readiness, OutputIsWaitedForPieceByPiece) {
  Sandbox sandbox = MakeSandbox();
  Execution program = Must(sandbox.StartShell(
      "printf 'server rea'; read x; printf 'dy\\nserver ready\\n'; read x; echo late >&2",
      {.stdin_pipe = true}));
  Must(program.WaitForOutput(Stream::kStdout, "rea", kLong));
  EXPECT_THAT(program.WaitForOutput(Stream::kStdout, "ready", Millis(1)),
              FailsWith(ErrorCode::kOverloaded));
  Tell(program);
  const std::uint64_t first = Must(program.WaitForOutput(Stream::kStdout, "ready\n", kLong));
  EXPECT_EQ(first, 13U);
  EXPECT_EQ(Must(program.WaitForOutput(Stream::kStdout, "ready\n", kLong, first)), 26U);
  auto never = std::async(std::launch::async, [&] {
    return program.WaitForOutput(Stream::kStdout, "ready", kLong, 26);
  });
  Tell(program);
  EXPECT_THAT(never.get(), FailsWith(ErrorCode::kConflict));
  EXPECT_EQ(Must(program.WaitForOutput(Stream::kStderr, "late", kLong)), 4U);
  // What has ended can still be looked through.
  EXPECT_TRUE(Must(program.Wait()).ok());
  EXPECT_EQ(Must(program.WaitForOutput(Stream::kStdout, "rea", kLong)), 10U);
}

TEST_F(Readiness, OutputThatIsNoLongerKeptIsAnError) {
  Sandbox sandbox = MakeSandbox();
  Execution program =
      Must(sandbox.StartShell("echo ready; head -c 4000000 /dev/zero", {.max_output = 64_KiB}));
  (void)Must(program.Wait());
  const auto lost = program.WaitForOutput(Stream::kStdout, "ready", kLong);
  ASSERT_THAT(lost, FailsWith(ErrorCode::kInvalidOptions));
  EXPECT_EQ(lost.error().field, "cursor");
}

TEST_F(Readiness, CallbacksMustNotWait) {
  Sandbox sandbox = MakeSandbox();
  std::promise<std::vector<ErrorCode>> told;
  std::promise<Execution> handed;
  auto execution = handed.get_future().share();
  ExecOptions options;
  options.on_output = [&](Stream, std::span<const std::byte>) {
    const Execution self = execution.get();
    told.set_value({self.WaitForOutput(Stream::kStdout, "x", kLong).error().code,
                    self.WaitForPort(kPort, kLong).error().code});
  };
  Execution program = Must(sandbox.Start({"echo", "once"}, std::move(options)));
  handed.set_value(program);
  EXPECT_THAT(told.get_future().get(),
              ::testing::ElementsAre(ErrorCode::kConflict, ErrorCode::kConflict));
  (void)Must(program.Wait());
}

}  // namespace
}  // namespace palmshed::tests
