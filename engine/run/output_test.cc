#include "run/output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "palmshed/error.h"
#include "palmshed/units.h"

namespace palmshed::run {
namespace {

void Put(Output& output, std::string_view text) {
  while (!text.empty()) {
    const auto space = output.Reserve();
    const std::size_t size = std::min(space.size(), text.size());
    std::memcpy(space.data(), text.data(), size);
    output.Commit(size);
    text.remove_prefix(size);
  }
}

std::string Pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 23);
  return text;
}

TEST(Output, KeepsEverythingUpToTheLimit) {
  // C009 (d): exactly the limit is not truncated.
  Output output(Bytes{100000});
  const std::string text = Pattern(100000);
  Put(output, text);
  const Captured captured = output.Snapshot();
  EXPECT_EQ(captured.bytes, text);
  EXPECT_EQ(captured.total, 100000U);
  EXPECT_FALSE(captured.truncated);
}

TEST(Output, KeepsTheTailBeyondTheLimit) {
  // C009 (e): one byte more is.
  Output output(Bytes{100000});
  const std::string text = Pattern(100001);
  Put(output, text);
  const Captured captured = output.Snapshot();
  EXPECT_EQ(captured.bytes, text.substr(1));
  EXPECT_TRUE(captured.truncated);
}

TEST(Output, ReadsByCursorAcrossChunks) {
  Output output(Bytes{1 << 20});
  const std::string text = Pattern(300000);
  Put(output, text);
  output.Finish();
  std::string read;
  std::array<std::byte, 7777> buffer{};
  while (true) {
    const auto n = output.Read(read.size(), buffer, {});
    ASSERT_TRUE(n.has_value());
    if (*n == 0) break;
    read.append(reinterpret_cast<const char*>(buffer.data()), *n);
  }
  EXPECT_EQ(read, text);
}

TEST(Output, RefusesACursorThatIsNoLongerKept) {
  Output output(Bytes{1000});
  Put(output, Pattern(400000));
  std::array<std::byte, 10> buffer{};
  const auto n = output.Read(0, buffer, Millis(0));
  ASSERT_FALSE(n.has_value());
  EXPECT_EQ(n.error().code, ErrorCode::kInvalidOptions);
  EXPECT_EQ(n.error().field, "cursor");
}

TEST(Output, KeepsWhatIsHeldBeyondItsLimit) {
  Output output(Bytes{1000});
  output.Hold(100);
  const std::string text = Pattern(400000);
  Put(output, text);
  std::array<std::byte, 10> buffer{};
  EXPECT_TRUE(output.Read(100, buffer, Millis(0)).has_value());
  EXPECT_EQ(output.Snapshot().bytes, text.substr(text.size() - 1000));
  output.Hold(text.size());
  EXPECT_FALSE(output.Read(100, buffer, Millis(0)).has_value());
}

TEST(Output, WaitsForOutput) {
  Output output(Bytes{1000});
  std::array<std::byte, 10> buffer{};
  const auto none = output.Read(0, buffer, Millis(1));
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::kOverloaded);
  std::thread writer([&] { Put(output, "hi"); });
  const auto n = output.Read(0, buffer, {});
  writer.join();
  ASSERT_TRUE(n.has_value());
  EXPECT_EQ(*n, 2U);
}

}  // namespace
}  // namespace palmshed::run
