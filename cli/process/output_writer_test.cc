#include "cli/process/output_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cli/process/descriptor.h"
#include "palmshed/options.h"

namespace palmshed::cli {
namespace {

/// Puts a pipe in the place of standard output and takes it away again.
class OutputWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    (void)std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    reader_ = Descriptor(pipe[0]);
    const Descriptor writer(pipe[1]);
    saved_ = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    ASSERT_EQ(::dup2(writer.get(), STDOUT_FILENO), STDOUT_FILENO);
  }
  void TearDown() override { (void)::dup2(saved_.get(), STDOUT_FILENO); }

  static std::span<const std::byte> AsBytes(const std::string& text) {
    return std::as_bytes(std::span(text));
  }

  Descriptor reader_{};
  Descriptor saved_{};
};

TEST_F(OutputWriterTest, WaitsForASlowReader) {
  auto output = OutputWriter::Create();
  ASSERT_TRUE(output);
  const std::string sent(1U << 20, 'x');  // More than a pipe holds.
  std::thread writer([&] {
    output->Write(Stream::kStdout, AsBytes(sent));
    (void)::close(STDOUT_FILENO);
  });
  std::size_t received = 0;
  std::vector<char> buffer(4096);
  for (ssize_t size = 0; (size = ::read(reader_.get(), buffer.data(), buffer.size())) > 0;) {
    received += static_cast<std::size_t>(size);
  }
  writer.join();
  EXPECT_EQ(received, sent.size());
  EXPECT_FALSE(output->failure());
}

TEST_F(OutputWriterTest, StopsWaitingWhenAbandoned) {
  auto output = OutputWriter::Create();
  ASSERT_TRUE(output);
  std::thread writer([&] { output->Write(Stream::kStdout, AsBytes(std::string(1U << 20, 'x'))); });
  output->Abandon();
  writer.join();  // The test hangs here if it does not.
  EXPECT_FALSE(output->failure());
}

TEST_F(OutputWriterTest, NoticesThatTheReaderIsGone) {
  auto output = OutputWriter::Create();
  ASSERT_TRUE(output);
  reader_ = Descriptor();
  output->Write(Stream::kStdout, AsBytes("x"));
  pollfd wait{.fd = output->failed_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 1);
  ASSERT_TRUE(output->failure());
  EXPECT_EQ(output->failure()->sys_errno, EPIPE);
}

}  // namespace
}  // namespace palmshed::cli
