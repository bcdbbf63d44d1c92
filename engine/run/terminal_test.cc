#include "run/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/options.h"

namespace palmshed::run {
namespace {

/// Both ends of one, as a program's child sends them.
class TerminalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    master_ = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(master_.valid());
    ASSERT_EQ(::unlockpt(master_.get()), 0);
    slave_ = UniqueFd(::ioctl(master_.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    ASSERT_TRUE(slave_.valid());
    auto socket = terminal_.Ask();
    ASSERT_TRUE(socket);
    child_ = *std::move(socket);
  }

  void Send(std::span<const BorrowedFd> fds) const {
    ASSERT_TRUE(sys::SendMessage(child_.get(), std::array{std::byte{0}}, fds));
  }
  void SendEnds() const { Send(std::array<BorrowedFd, 2>{master_.get(), slave_.get()}); }

  TerminalSize Size() const {
    winsize size{};
    (void)::ioctl(slave_.get(), TIOCGWINSZ, &size);
    return {.rows = size.ws_row, .columns = size.ws_col};
  }

  Terminal terminal_{};
  UniqueFd master_{};
  UniqueFd slave_{};
  UniqueFd child_{};
};

TEST_F(TerminalTest, IsTakenOnceItIsThere) {
  const auto early = terminal_.Take();
  ASSERT_TRUE(early);
  EXPECT_FALSE(*early);
  EXPECT_GE(terminal_.awaited(), 0);
  SendEnds();
  const auto ends = terminal_.Take();
  ASSERT_TRUE(ends && *ends);
  EXPECT_EQ(::isatty((*ends)->out.get()), 1);
  EXPECT_EQ(::isatty((*ends)->in.get()), 1);
  EXPECT_LT(terminal_.awaited(), 0);
  const auto again = terminal_.Take();
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
}

TEST_F(TerminalTest, WillNotComeWhenTheChildIsGone) {
  child_.reset();
  const auto none = terminal_.Take();
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
  EXPECT_LT(terminal_.awaited(), 0);
}

TEST_F(TerminalTest, WithoutRoomForItsEndsIsAnError) {
  Send({});  // What arrives in a process that can open nothing more.
  const auto lost = terminal_.Take();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().sys_errno, EMFILE);
}

TEST_F(TerminalTest, SizeHoldsBeforeAndAfterItIsThere) {
  terminal_.Resize({.rows = 10, .columns = 20});
  SendEnds();
  ASSERT_TRUE(terminal_.Take());
  EXPECT_EQ(Size().rows, 10);
  EXPECT_EQ(Size().columns, 20);
  terminal_.Resize({.rows = 30, .columns = 40});
  EXPECT_EQ(Size().rows, 30);
  EXPECT_EQ(Size().columns, 40);
  terminal_.Close();
  terminal_.Resize({.rows = 1, .columns = 1});
  EXPECT_EQ(Size().rows, 30);
}

TEST_F(TerminalTest, EndOfInputIsWhatTheModesSay) {
  const auto end_of_input = [this](bool after_line) {
    return EndOfInput(master_.get(), after_line).value_or("unknown");
  };
  EXPECT_EQ(end_of_input(true), "\x04");
  EXPECT_EQ(end_of_input(false), "\x04\x04");
  termios modes{};
  ASSERT_EQ(::tcgetattr(slave_.get(), &modes), 0);
  modes.c_cc[VEOF] = 'e';
  ASSERT_EQ(::tcsetattr(slave_.get(), TCSANOW, &modes), 0);
  EXPECT_EQ(end_of_input(true), "e");
  modes.c_cc[VEOF] = _POSIX_VDISABLE;
  ASSERT_EQ(::tcsetattr(slave_.get(), TCSANOW, &modes), 0);
  EXPECT_EQ(end_of_input(false), "");
  EXPECT_FALSE(EndOfInput(child_.get(), false)) << "no terminal has none";
}

}  // namespace
}  // namespace palmshed::run
