#include "model/names.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/files.h"
#include "palmshed/options.h"
#include "palmshed/result.h"

namespace palmshed::model {
namespace {

// The tables are in the order of declaration and complete: values are 0, 1, 2, ... up to `last`.
template <class E>
void ExpectEveryValueSpelledOnce(E last) {
  std::set<std::string_view> names;
  std::size_t expected = 0;
  for (const auto& [value, name] : Spellings<E>()) {
    EXPECT_EQ(static_cast<std::size_t>(value), expected++) << name;
    EXPECT_TRUE(names.insert(name).second) << name << " is spelled twice";
    EXPECT_EQ(Spell(value), name);
    EXPECT_EQ(FromName<E>(name), value);
    EXPECT_TRUE(IsKnown(value));
  }
  EXPECT_EQ(expected, static_cast<std::size_t>(last) + 1);
  EXPECT_FALSE(IsKnown(static_cast<E>(expected)));
}

TEST(Names, EveryEnumerationIsSpelled) {
  ExpectEveryValueSpelledOnce(ErrorCode::kBackendLost);
  ExpectEveryValueSpelledOnce(Status::kTimedOut);
  ExpectEveryValueSpelledOnce(Cause::kInternal);
  ExpectEveryValueSpelledOnce(Network::kProxy);
  ExpectEveryValueSpelledOnce(Storage::kLoop);
  ExpectEveryValueSpelledOnce(Descendants::kWait);
  ExpectEveryValueSpelledOnce(FileType::kOther);
  ExpectEveryValueSpelledOnce(Support::kUnknown);
}

TEST(Names, PublicSpellingsAreTheSpecifications) {
  EXPECT_EQ(ToString(ErrorCode::kOomExceeded), "ERR_OOM_EXCEEDED");
  EXPECT_EQ(ToString(ErrorCode::kInvalidOptions), "INVALID_OPTIONS");
  EXPECT_EQ(ToString(Status::kTimedOut), "timedout");
  EXPECT_EQ(ToString(Cause::kWallTimeout), "wall_timeout");
}

TEST(Names, UnknownAndWronglyCasedNamesAreRefused) {
  EXPECT_EQ(FromName<Network>("Disabled"), std::nullopt);
  EXPECT_EQ(FromName<Network>(""), std::nullopt);
  EXPECT_EQ(Choices<Network>(), R"("disabled", "allow" or "proxy")");
}

}  // namespace
}  // namespace palmshed::model
