#include "run/readiness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/units.h"
#include "run/output.h"

namespace palmshed::run {
namespace {

using ::testing::HasSubstr;

constexpr Millis kLong = std::chrono::seconds(30);

void Print(Output& output, std::string_view text) {
  while (!text.empty()) {
    const auto space = output.Reserve();
    const std::size_t size = std::min(space.size(), text.size());
    std::memcpy(space.data(), text.data(), size);
    output.Commit(size);
    text.remove_prefix(size);
  }
}

TEST(AwaitText, FindsWhatIsThereFromACursorOn) {
  Output output(Bytes{0});
  Print(output, "ready one ready two");
  EXPECT_EQ(AwaitText(output, "ready", 0, kLong, {}).value_or(0), 5U);
  EXPECT_EQ(AwaitText(output, "ready", 1, kLong, {}).value_or(0), 15U);
  EXPECT_EQ(AwaitText(output, "two", 5, kLong, {}).value_or(0), 19U);
}

TEST(AwaitText, FindsWhatComesInPieces) {
  Output output(Bytes{0});
  auto found = std::async(std::launch::async,
                          [&] { return AwaitText(output, "list\nening", 0, kLong, {}); });
  for (const char letter : std::string_view("lislist\neninglist\nening")) {
    Print(output, {&letter, 1});
  }
  EXPECT_EQ(found.get().value_or(0), 13U);
}

TEST(AwaitText, FindsWhatLiesAcrossTheEndsOfWhatIsReadAtOnce) {
  Output output(Bytes{0});
  const std::string before((64U << 10) - 3, 'x');
  Print(output, before + "needle" + before + "needle");
  EXPECT_EQ(AwaitText(output, "needle", 0, kLong, {}).value_or(0), before.size() + 6);
  EXPECT_EQ(AwaitText(output, "needle", before.size() + 1, kLong, {}).value_or(0),
            2 * before.size() + 12);
}

TEST(AwaitText, SaysWhyItDidNotCome) {
  Output output(Bytes{1});
  const auto code = [&](std::string_view text, std::uint64_t cursor, Millis limit,
                        const std::stop_token& stop = {}) {
    const auto found = AwaitText(output, text, cursor, limit, stop);
    return found ? "found" : std::string(ToString(found.error().code));
  };
  EXPECT_EQ(code("ready", 0, Millis(1)), "OVERLOADED");
  EXPECT_EQ(code("", 0, kLong), "INVALID_OPTIONS");
  EXPECT_EQ(code(std::string(70'000, 'x'), 0, kLong), "INVALID_OPTIONS");
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(code("ready", 0, kLong, stopped.get_token()), "CONFLICT");
  Print(output, std::string(1 << 20, 'x'));
  EXPECT_EQ(code("ready", 0, kLong), "INVALID_OPTIONS") << "no longer kept";
  output.Finish();
  EXPECT_EQ(code("ready", 1 << 20, kLong), "CONFLICT");
}

TEST(AwaitText, StopRequestWakesIt) {
  const Output output(Bytes{0});
  std::stop_source source;
  auto found = std::async(std::launch::async,
                          [&] { return AwaitText(output, "ready", 0, kLong, source.get_token()); });
  source.request_stop();
  EXPECT_EQ(found.get().error().code, ErrorCode::kConflict);
}

TEST(IsListener, ReadsBothTables) {
  constexpr char kFour[] =
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
      "1";
  constexpr char kSix[] =
      "   1: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 0:0";
  EXPECT_TRUE(IsListener(kFour, 8080));
  EXPECT_FALSE(IsListener(kFour, 8081));
  EXPECT_TRUE(IsListener(kSix, 80));
  // Connected from that port, not listening.
  EXPECT_FALSE(IsListener("   2: 0100007F:1F90 0100007F:8000 01 00000000:00000000", 8080));
  for (const char* line : {"", "sl  local_address rem_address   st", "1: :1F90", "1: 1F90 x 0A",
                           "1: 0:1F90x 0:0 0A", "1: 0: 0:0 0A", "1: 0:11F90 0:0 0A"}) {
    EXPECT_FALSE(IsListener(line, 8080)) << line;
  }
}

class AwaitListenerTest : public ::testing::Test {
 protected:
  AwaitListenerTest() {
    for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
      UniqueFd fd(::open(table, O_RDONLY | O_CLOEXEC));
      if (fd.valid()) tables_.push_back(std::move(fd));
    }
  }
  Result<void> Await(Millis limit, const std::stop_token& stop = {}) const {
    return AwaitListener(tables_, {.port = port_, .limit = limit, .stop = stop, .pause = pause_});
  }

  std::vector<UniqueFd> tables_;
  std::uint16_t port_ = 0;
  std::function<Result<void>(Millis)> pause_ = [](Millis) { return Result<void>(); };
};

TEST_F(AwaitListenerTest, SeesOneThatListensAndNotOneThatIsBoundOnly) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket.get(), any, size), 0);
  ASSERT_EQ(::getsockname(socket.get(), any, &size), 0);
  port_ = ntohs(address.sin_port);
  const auto early = Await(Millis(0));
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().code, ErrorCode::kOverloaded);
  EXPECT_THAT(early.error().message, HasSubstr(std::to_string(port_)));
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  EXPECT_TRUE(Await(Millis(0)));
}

TEST_F(AwaitListenerTest, EndsEarlyForAReason) {
  port_ = 1;
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(Await(kLong, stopped.get_token()).error().code, ErrorCode::kConflict);
  int pauses = 0;
  pause_ = [&](Millis) -> Result<void> {
    if (++pauses < 4) return {};
    return std::unexpected(Error{.code = ErrorCode::kBackendLost});
  };
  EXPECT_EQ(Await(kLong).error().code, ErrorCode::kBackendLost);
}

TEST_F(AwaitListenerTest, LooksMoreAndMoreSeldom) {
  port_ = 1;
  std::vector<Millis> pauses;
  pause_ = [&](Millis span) -> Result<void> {
    if (span > Millis(0)) pauses.push_back(span);
    if (pauses.size() < 9) return {};
    return std::unexpected(Error{.code = ErrorCode::kBackendLost});
  };
  EXPECT_FALSE(Await(kLong).has_value());
  EXPECT_THAT(pauses, ::testing::ElementsAre(Millis(1), Millis(2), Millis(4), Millis(8), Millis(16),
                                             Millis(32), Millis(50), Millis(50), Millis(50)));
}

}  // namespace
}  // namespace palmshed::run
