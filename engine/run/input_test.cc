#include "run/input.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/loop.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::run {
namespace {

/// What happens on the loop's thread happens there.
class InputTest : public ::testing::Test {
 protected:
  ~InputTest() override {
    loop_->Run([this] { input_.Shut(); });
  }

  static UniqueFd NonBlocking(UniqueFd fd) {
    EXPECT_TRUE(sys::SetNonBlocking(fd.get()));
    return fd;
  }
  Result<void> Flush(std::function<void()> again = [] {}) {
    Result<void> flushed;
    loop_->Run([&] { flushed = input_.Flush(*loop_, std::move(again)); });
    return flushed;
  }
  Result<void> Queue(std::string_view text) { return input_.Queue(std::as_bytes(std::span(text))); }

  std::unique_ptr<Loop> loop_ = *Loop::Create();
  Input input_;
};

TEST_F(InputTest, IsWrittenAndThenItEnds) {
  auto pipe = *sys::Pipe();
  input_.Open(NonBlocking(std::move(pipe.second)), "all", true);
  EXPECT_TRUE(Flush());
  EXPECT_FALSE(input_.open());
  std::array<std::byte, 8> got{};
  EXPECT_EQ(sys::Read(pipe.first.get(), got).value_or(0), 3U);
  EXPECT_EQ(sys::Read(pipe.first.get(), got).value_or(1), 0U);
}

TEST_F(InputTest, WaitsForRoom) {
  auto pipe = *sys::Pipe();
  constexpr std::size_t kMuch = 1U << 20;
  input_.Open(NonBlocking(std::move(pipe.second)), std::string(kMuch, 'x'), true);
  const std::function<void()> again = [&] { EXPECT_TRUE(input_.Flush(*loop_, again)); };
  EXPECT_TRUE(Flush(again));
  EXPECT_TRUE(input_.open());
  std::size_t total = 0;
  std::array<std::byte, 4096> got{};
  for (std::size_t size = 1; size > 0; total += size) {
    size = sys::Read(pipe.first.get(), got).value_or(0);
  }
  EXPECT_EQ(total, kMuch);
}

TEST_F(InputTest, OfAProgramThatReadsNoMoreIsDroppedWithoutAnError) {
  auto pipe = *sys::Pipe();
  input_.Open(NonBlocking(std::move(pipe.second)), "unread", false);
  pipe.first.reset();
  EXPECT_TRUE(Flush());
  EXPECT_FALSE(input_.open());
  EXPECT_EQ(Queue("more").error().code, ErrorCode::kConflict);
}

TEST_F(InputTest, ThatCannotBeWrittenIsAnErrorAndHasNoEarlyEnd) {
  input_.Open(*sys::Open("/dev/full", O_WRONLY), "lost", true);
  const auto flushed = Flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().sys_errno, ENOSPC);
  EXPECT_TRUE(input_.open());
  EXPECT_TRUE(Flush()) << "said once";
  EXPECT_TRUE(input_.open());
  EXPECT_EQ(Queue("more").error().code, ErrorCode::kConflict);
}

TEST_F(InputTest, WhoseEndCannotBeTypedIsAnError) {
  auto pipe = *sys::Pipe();  // No terminal, and so no end-of-file character.
  input_.OpenTerminal("typed", true);
  input_.Connect(NonBlocking(std::move(pipe.second)));
  const auto flushed = Flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().op, "tcgetattr");
  EXPECT_TRUE(input_.open());
}

}  // namespace
}  // namespace palmshed::run
