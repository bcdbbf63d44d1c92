// Bytes stay bytes, on every way in and out, and output is bounded without being stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "palmshed/palmshed.h"
#include "support/kernel_test.h"
#include "support/temp_dir.h"

namespace palmshed::tests {
namespace {

using ::testing::HasSubstr;

class Encoding : public KernelTest {};

/// Every byte value, 4096 times.
std::string AllBytes() {
  std::string bytes;
  for (int i = 0; i < 4096 * 256; ++i) bytes += static_cast<char>(i % 256);
  return bytes;
}

// C011
TEST_F(Encoding, BytesAreTheSameOnEveryWay) {
  const std::string bytes = AllBytes();
  constexpr char kSum[] = "fbbab289f7f94b25736c58be46a994c441fd02552cc6022352e3d86d2fab7c83  -\n";
  Sandbox sandbox = MakeSandbox();
  Must(sandbox.WriteFile("bytes", bytes));
  EXPECT_THAT(ExecShell(sandbox, "sha256sum < bytes"), ExitedWith(0, kSum));
  EXPECT_THAT(ExecShell(sandbox, "sha256sum", {.stdin_bytes = bytes}), ExitedWith(0, kSum));
  EXPECT_THAT(ExecShell(sandbox, "cat bytes"), ExitedWith(0, bytes));
  EXPECT_EQ(ExecShell(sandbox, "cat bytes >&2").err.bytes, bytes);
  EXPECT_EQ(Must(sandbox.ReadFile("bytes")), bytes);

  const TempDir host;
  Must(sandbox.DownloadFile("bytes", host.path() + "/down"));
  EXPECT_EQ(Slurp(host.path() + "/down"), bytes);
  Must(sandbox.UploadFile(host.path() + "/down", "up"));
  EXPECT_THAT(ExecShell(sandbox, "cmp bytes up && echo same"), ExitedWith(0, "same\n"));
}

// C025
TEST_F(Encoding, CharactersSplitOverWritesStayWhole) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_THAT(ExecShell(sandbox,
                        "printf '\\342'; sleep 0.05; printf '\\202'; sleep 0.05; "
                        "printf '\\254'; printf '\\342\\202'"),
              ExitedWith(0, "\xe2\x82\xac\xe2\x82"));
  const ExecResult many = ExecShell(sandbox, "yes '\xe2\x98\x95' | head -100000 | tr -d '\\n'");
  EXPECT_EQ(many.out.bytes.size(), 300'000U);
  EXPECT_EQ(many.out.bytes.find("\xef\xbf\xbd"), std::string::npos);
  EXPECT_THAT(ToJson(many), HasSubstr("\xe2\x98\x95\xe2\x98\x95"));
}

// C009 (a), (c)
TEST_F(Encoding, LargeOutputIsKeptToItsEndAndTheProgramRunsOn) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult run =
      ExecShell(sandbox, "head -c 50331648 /dev/zero | tr '\\0' A; echo END; echo END >&2; exit 7");
  EXPECT_EQ(run.exit_code, 7);
  EXPECT_EQ(run.out.bytes.size(), 16U << 20);
  EXPECT_TRUE(run.out.bytes.ends_with("AAAEND\n"));
  EXPECT_EQ(run.out.total, 50331648U + 4);
  EXPECT_TRUE(run.out.truncated);
  EXPECT_EQ(run.err.bytes, "END\n");
  EXPECT_FALSE(run.err.truncated);
  EXPECT_THAT(run.out.Text().substr(0, 100), HasSubstr("[output truncated"));
}

// C009 (c)
TEST_F(Encoding, BothStreamsMayBeLargeAtOnce) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult run =
      ExecShell(sandbox, "head -c 30000000 /dev/zero >&2 & head -c 30000000 /dev/zero; wait",
                {.max_output = Bytes{1 << 20}});
  for (const Captured* stream : {&run.out, &run.err}) {
    EXPECT_EQ(stream->total, 30'000'000U);
    EXPECT_EQ(stream->bytes.size(), 1U << 20);
    EXPECT_TRUE(stream->truncated);
  }
}

// C009 (b)
TEST_F(Encoding, EndlessOutputEndsWithTheTimeout) {
  Sandbox sandbox = MakeSandbox();
  const ExecResult run = ExecShell(sandbox, "yes", {.timeout = Millis(500)});
  EXPECT_THAT(run, EndedBy(Cause::kWallTimeout));
  EXPECT_TRUE(run.out.truncated);
  EXPECT_EQ(run.out.bytes.size(), 16U << 20);
}

// C009 (d), (e)
TEST_F(Encoding, LimitIsExact) {
  Sandbox sandbox = MakeSandbox();
  for (const std::size_t extra : {0U, 1U}) {
    const std::string size = std::to_string((1 << 20) + extra);
    const ExecResult run =
        ExecShell(sandbox, "head -c " + size + " /dev/zero", {.max_output = 1_MiB});
    EXPECT_EQ(run.out.bytes.size(), 1U << 20);
    EXPECT_EQ(run.out.total, (1U << 20) + extra);
    EXPECT_EQ(run.out.truncated, extra == 1);
  }
}

// Sanitizers keep freed memory back to find its later uses.
#ifndef PALMSHED_SANITIZED

/// Most memory that this process has used, in MiB.
long PeakResidentMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6)) / 1024;
  }
  return -1;
}

// C009
TEST_F(Encoding, MemoryOfTheHostProgramIsBounded) {
  Sandbox sandbox = MakeSandbox();
  EXPECT_TRUE(ExecShell(sandbox, "true").ok());
  const long before = PeakResidentMib();
  const Execution running = Must(sandbox.StartShell("head -c 300000000 /dev/zero"));
  EXPECT_EQ(Must(running.Wait()).out.total, 300'000'000U);
  EXPECT_LT(PeakResidentMib() - before, 64);
}

#endif

}  // namespace
}  // namespace palmshed::tests
