#include "backends/native/disk_enforcer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <expected>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "backends/native/enforcer.h"
#include "backends/native/fake_tree.h"
#include "base/loop.h"
#include "base/schedule.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed::backends::native {
namespace {

/// Its thread is so quick that each task has run before Post returns.
class QuickLoop final : public Loop {
 public:
  void Finish() override {}
  void Post(std::move_only_function<void()> task) override { task(); }
  void Run(const std::function<void()>& task) override { task(); }
  bool InLoop() const override { return true; }
  Result<std::unique_ptr<Watch>> WatchReadable(BorrowedFd, std::function<void()>) override {
    return std::unexpected(Error{});
  }
  Result<std::unique_ptr<Watch>> WatchWritable(BorrowedFd, std::function<void()>) override {
    return std::unexpected(Error{});
  }
  std::unique_ptr<Timer> After(std::chrono::nanoseconds, std::function<void()>) override {
    return nullptr;
  }
};

class DiskEnforcer : public ::testing::TestWithParam<Storage> {
 protected:
  DiskEnforcer() {
    tree_.Directory("/workspace");
    tree_.Directory("/tmp");
    disk_ = MakeDiskLimit(
        {.storage = GetParam(),
         .quota = Bytes{1U << 20},
         .place = {.workspace = tree_.At("/workspace"),
                   .tmp = tree_.At("/tmp"),
                   .owner = ::geteuid(),
                   .init = -1},
         .schedule = &schedule_},
        [this]() -> Result<UniqueFd> {
          return UniqueFd(::open(tree_.At("/workspace").c_str(), O_DIRECTORY | O_CLOEXEC));
        });
  }
  ~DiskEnforcer() override { disk_.source->Close(); }

  /// Of an execution that has failed, with what there is to find out still under way when this
  /// returns. `concluded` is then run, or not, by the time that AwaitAll returns.
  std::unique_ptr<Enforcer> Failed(std::function<void()> concluded) {
    auto enforcer = *disk_.source->Make();
    CarriedLimits carried;
    EXPECT_TRUE(enforcer->Begin({.disk = Bytes{1U << 20}}, carried));
    schedule_.Now([this] { go_on_.get_future().wait(); });
    // What is looked into however long it takes.
    constexpr int kStoppedAtFileSize = SIGXFSZ;
    enforcer->Conclude(kStoppedAtFileSize, loop_, std::move(concluded));
    return enforcer;
  }
  void AwaitAll() {
    go_on_.set_value();
    schedule_.Finish();
  }

  const FakeTree tree_;
  QuickLoop loop_;
  std::promise<void> go_on_;
  Schedule schedule_{1};
  DiskLimit disk_;
};

TEST_P(DiskEnforcer, ConcludesOnce) {
  int concluded = 0;
  const auto enforcer = Failed([&] { ++concluded; });
  EXPECT_EQ(concluded, 0);
  AwaitAll();
  EXPECT_EQ(concluded, 1);
  EXPECT_FALSE(enforcer->Finish().evidence.empty());
}

// Whoever is told may be gone by then, as a sandbox is that is destroyed at that moment.
TEST_P(DiskEnforcer, ConcludesNothingOnceFinished) {
  int concluded = 0;
  const auto enforcer = Failed([&] { ++concluded; });
  EXPECT_TRUE(enforcer->Finish().evidence.empty());
  AwaitAll();
  EXPECT_EQ(concluded, 0);
}

TEST_P(DiskEnforcer, ConcludesNothingOnceGone) {
  int concluded = 0;
  Failed([&] { ++concluded; }).reset();
  AwaitAll();
  EXPECT_EQ(concluded, 0);
}

std::string NameOfTest(const ::testing::TestParamInfo<Storage>& info) {
  return info.param == Storage::kDisk ? "Measured" : "Sized";
}

INSTANTIATE_TEST_SUITE_P(All, DiskEnforcer, ::testing::Values(Storage::kDisk, Storage::kMemory),
                         NameOfTest);

}  // namespace
}  // namespace palmshed::backends::native
