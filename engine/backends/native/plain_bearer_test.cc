#include "backends/native/plain_bearer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <vector>

#include "backends/native/armed_children.h"
#include "base/result.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PlainBearerTest : public ::testing::Test {
 protected:
  void Wanted() { EXPECT_FALSE(bearer_.Take()); }
  /// One that waits.
  void Made() {
    Wanted();
    bearer_.Prepare();
    EXPECT_TRUE(Answer(asked_, SocketOf()));
  }
  bool Answer(std::uint32_t sequence, const SharedSocket& socket) {
    Result<ArmedChildren::Armed> child(ArmedChildren::Armed{.pidfd = {}, .socket = socket});
    return bearer_.OnArmed(sequence, child);
  }
  static SharedSocket SocketOf() { return std::make_shared<const UniqueFd>(*sys::Eventfd()); }

  std::uint32_t asked_ = 0;
  bool refuses_ = false;
  std::vector<std::uint32_t> dismissed_;
  PlainBearer bearer_{{.ask = [this]() -> Result<std::uint32_t> {
                         if (refuses_) return std::unexpected(SysError("send", EPIPE));
                         return ++asked_;
                       },
                       .dismiss = [this](std::uint32_t child) { dismissed_.push_back(child); }}};
};

TEST_F(PlainBearerTest, IsAskedForOnceSomethingHasRun) {
  bearer_.Prepare();
  EXPECT_EQ(asked_, 0);
  Wanted();
  EXPECT_TRUE(bearer_.wanted());
  bearer_.Prepare();
  bearer_.Prepare();
  EXPECT_EQ(asked_, 1);
  EXPECT_FALSE(bearer_.wanted());
}

TEST_F(PlainBearerTest, IsForOneAtATime) {
  Made();
  const auto taken = bearer_.Take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->sequence, 1);
  EXPECT_TRUE(taken->socket);
  EXPECT_FALSE(bearer_.Take());
  bearer_.Prepare();
  EXPECT_EQ(asked_, 1);
  bearer_.Return(*taken, true);
  EXPECT_TRUE(bearer_.Take());
}

TEST_F(PlainBearerTest, AnotherIsAskedForWhenItEndsWithWhatItBore) {
  Made();
  bearer_.Return(*bearer_.Take(), false);
  EXPECT_FALSE(bearer_.Take());
  EXPECT_TRUE(bearer_.wanted());
  bearer_.Prepare();
  EXPECT_EQ(asked_, 2);
}

TEST_F(PlainBearerTest, HeedsOnlyTheAnswerToItsOwnQuestion) {
  Wanted();
  EXPECT_FALSE(Answer(1, SocketOf()));
  bearer_.Prepare();
  EXPECT_FALSE(Answer(2, SocketOf()));
  EXPECT_FALSE(bearer_.Take());
  EXPECT_TRUE(Answer(1, SocketOf()));
  EXPECT_TRUE(bearer_.Take());
}

TEST_F(PlainBearerTest, IsDoneWithoutWhereThereIsNone) {
  Wanted();
  refuses_ = true;
  bearer_.Prepare();
  EXPECT_TRUE(bearer_.wanted());
  refuses_ = false;
  bearer_.Prepare();
  Result<ArmedChildren::Armed> none(std::unexpect, SysError("clone", EAGAIN));
  EXPECT_TRUE(bearer_.OnArmed(asked_, none));
  EXPECT_FALSE(bearer_.Take());
  EXPECT_TRUE(bearer_.wanted());
}

TEST_F(PlainBearerTest, RestsByBeingDismissed) {
  Made();
  bearer_.Rest();
  EXPECT_THAT(dismissed_, ElementsAre(1));
  EXPECT_FALSE(bearer_.Take());
  EXPECT_TRUE(bearer_.wanted());
}

TEST_F(PlainBearerTest, DoesNotRestWhileItBears) {
  Made();
  const auto taken = bearer_.Take();
  bearer_.Rest();
  EXPECT_THAT(dismissed_, IsEmpty());
  bearer_.Return(*taken, true);
  EXPECT_TRUE(bearer_.Take());
}

TEST_F(PlainBearerTest, ThatHasDiedIsNotGivenOut) {
  Made();
  bearer_.OnGone(7);
  bearer_.OnGone(1);
  EXPECT_FALSE(bearer_.Take());
  bearer_.Prepare();
  bearer_.OnGone(2);
  EXPECT_TRUE(bearer_.wanted());
}

TEST_F(PlainBearerTest, ThatHasDiedWhileItBoreIsReturned) {
  Made();
  const auto taken = bearer_.Take();
  bearer_.OnGone(1);
  EXPECT_FALSE(bearer_.wanted());
  bearer_.Return(*taken, false);
  EXPECT_TRUE(bearer_.wanted());
}

TEST_F(PlainBearerTest, WantsNothingMoreOnceInitIsDead) {
  Made();
  const auto taken = bearer_.Take();
  bearer_.OnDead();
  bearer_.Return(*taken, true);
  EXPECT_FALSE(bearer_.Take());
  EXPECT_FALSE(bearer_.wanted());
  bearer_.Prepare();
  EXPECT_EQ(asked_, 1);
}

}  // namespace
}  // namespace palmshed::backends::native
