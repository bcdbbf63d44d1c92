#include "backends/native/sampled_enforcer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/native/enforcer.h"
#include "base/loop.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "kernel/process_memory.h"
#include "kernel/task_clock.h"
#include "kernel/test_namespace.h"
#include "palmshed/error.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"

namespace palmshed::backends::native {
namespace {

using kernel::Burn;
using kernel::Steps;
using kernel::TestNamespace;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1U << 20;
std::uint64_t OwnMemory() {
  const UniqueFd proc = *sys::OpenAt(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY);
  const kernel::ResidentPages own = *kernel::ReadResident(proc.get(), "self");
  return own.anonymous + own.shared;
}

constexpr milliseconds kDeadline = seconds(20);

void Take(std::uint64_t bytes) {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) ::_exit(99);
  std::memset(at, 1, bytes);
}

int Forever() {
  while (true) ::pause();
}

enum class Way : std::uint8_t { kClock, kLooks, kWholeHost };

// One execution after another in a sandbox, each under its limits.
class SampledEnforcerTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (GetParam() == Way::kClock && !kernel::TaskClock::Open(::getpid())) {
      GTEST_SKIP() << "perf_event_open on this process is refused";
    }
  }
  void TearDown() override {
    if (loop_) loop_->Run([this] { enforcers_.clear(); });
    source_.reset();
    space_.reset();
    if (loop_) loop_->Finish();
  }

  /// The loop starts afterwards: nobody forks a program with threads.
  void Make(const std::vector<TestNamespace::Body>& bodies) {
    space_ = std::make_unique<TestNamespace>(bodies);
    auto source = SampledSource::Create({.init = space_->init(),
                                         .own_proc = GetParam() != Way::kWholeHost,
                                         .task_clock = GetParam() != Way::kLooks});
    ASSERT_TRUE(source) << source.error().message;
    source_ = *std::move(source);
    loop_ = *Loop::Create();
    hits_ = std::vector<std::promise<void>>(bodies.size());
    enforcers_.resize(bodies.size());
  }
  void Start(std::size_t index, const plan::Limits& limits) {
    enforcers_[index] = *source_->Make();
    Enforcer& enforcer = *enforcers_[index];
    auto adopted = enforcer.Adopt(space_->child(index), ChildRole::kBecomesProgram);
    ASSERT_TRUE(adopted) << adopted.error().message;
    CarriedLimits carried;
    auto begun = enforcer.Begin(limits, carried);
    ASSERT_TRUE(begun) << begun.error().message;
    loop_->Run([&] { enforcer.Watch(*loop_, [this, index] { hits_[index].set_value(); }); });
    space_->Go(index);
  }
  /// Whether a limit was met.
  bool AwaitHit(std::size_t index = 0, milliseconds within = kDeadline) {
    return hits_[index].get_future().wait_for(within) == std::future_status::ready;
  }
  /// False when nobody has looked at its processes in time.
  bool AwaitLook(std::size_t index) {
    const auto looks = [&] {
      Enforced so_far;
      loop_->Run([&] { so_far = enforcers_[index]->SoFar(); });
      const auto found = std::ranges::find(so_far.evidence, "sampled_looks",
                                           [](const auto& entry) { return entry.first; });
      return found == so_far.evidence.end() ? 0 : found->second;
    };
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    while (looks() == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    return looks() > 0;
  }
  Enforced Finish(std::size_t index = 0) {
    Enforced enforced;
    loop_->Run([&] { enforced = enforcers_[index]->Finish(); });
    return enforced;
  }
  static plan::Limits Cpu(milliseconds time) { return {.cpu_time = time}; }
  static plan::Limits Memory(std::uint64_t bytes) { return {.memory = Bytes{bytes}}; }

  /// Runs one body to its hit.
  LimitHit HitOf(const TestNamespace::Body& body, const plan::Limits& limits) {
    Make({body});
    if (HasFatalFailure()) return {};
    Start(0, limits);
    EXPECT_TRUE(AwaitHit()) << "no limit was met";
    const Enforced enforced = Finish();
    EXPECT_TRUE(enforced.hit);
    return enforced.hit.value_or(LimitHit{});
  }
  /// 50 ms or 5 % of the budget, and what the two tests of one machine take from each other.
  static void ExpectCpuHit(const LimitHit& hit, std::uint64_t budget) {
    EXPECT_EQ(hit.cause, Cause::kCpuTime);
    EXPECT_EQ(hit.limit, budget);
    EXPECT_GE(hit.observed, budget);
    EXPECT_LE(hit.observed, budget + 50);
  }

  std::unique_ptr<TestNamespace> space_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<SampledSource> source_;
  std::vector<std::promise<void>> hits_;
  std::vector<std::unique_ptr<Enforcer>> enforcers_;
};

INSTANTIATE_TEST_SUITE_P(, SampledEnforcerTest,
                         ::testing::Values(Way::kClock, Way::kLooks, Way::kWholeHost),
                         [](const auto& way) -> std::string {
                           switch (way.param) {
                             case Way::kClock:
                               return "Clock";
                             case Way::kLooks:
                               return "Looks";
                             case Way::kWholeHost:
                               return "WholeHost";
                           }
                           return "";
                         });

// ---- CPU time

// C089
TEST_P(SampledEnforcerTest, BudgetBelowASecondIsMetClosely) {
  ExpectCpuHit(HitOf([] { return Burn(100), 0; }, Cpu(milliseconds(300))), 300);
}

// C005
TEST_P(SampledEnforcerTest, ThreadsShareTheBudget) {
  ExpectCpuHit(HitOf(
                   [] {
                     std::vector<std::jthread> threads;
                     threads.reserve(4);
                     for (int i = 0; i < 4; ++i) threads.emplace_back([] { Burn(100); });
                     return 0;
                   },
                   Cpu(milliseconds(400))),
               400);
}

// C005
TEST_P(SampledEnforcerTest, ChildrenInSequenceShareTheBudget) {
  ExpectCpuHit(HitOf(
                   [] {
                     while (true) {
                       const pid_t child = ::fork();
                       if (child == 0) {
                         Burn(0.05);
                         ::_exit(0);
                       }
                       (void)::waitpid(child, nullptr, 0);
                     }
                     return 0;
                   },
                   Cpu(milliseconds(400))),
               400);
}

// C005: a daemon in a session of its own, whose parents are gone.
TEST_P(SampledEnforcerTest, OrphansShareTheBudget) {
  ExpectCpuHit(HitOf(
                   [] {
                     if (::fork() == 0) {
                       (void)::setsid();
                       if (::fork() == 0) Burn(100);
                       ::_exit(0);
                     }
                     return Forever();
                   },
                   Cpu(milliseconds(300))),
               300);
}

TEST_P(SampledEnforcerTest, SleepIsFree) {
  Make({[] { return ::usleep(700'000); }});
  Start(0, Cpu(milliseconds(100)));
  ASSERT_TRUE(space_->AwaitEnd());
  const Enforced enforced = Finish();
  EXPECT_FALSE(enforced.hit);
  ASSERT_TRUE(enforced.cpu_time);
  EXPECT_LT(*enforced.cpu_time, milliseconds(50));
}

TEST_P(SampledEnforcerTest, ProgramWithinItsLimitsIsLeftAlone) {
  Make({[] {
    Take(16 * kMiB);
    Burn(0.2);
    return 0;
  }});
  Start(0, {.cpu_time = seconds(5), .memory = Bytes{256 * kMiB}});
  ASSERT_TRUE(space_->AwaitEnd());
  const Enforced enforced = Finish();
  EXPECT_FALSE(enforced.hit);
  EXPECT_GT(*enforced.cpu_time, milliseconds(150));
  ASSERT_TRUE(enforced.peak_memory);
  EXPECT_GT(Count(*enforced.peak_memory), 16 * kMiB);
  EXPECT_LT(Count(*enforced.peak_memory), OwnMemory() + 18 * kMiB);  // It is a copy of this.
}

// What nobody waits for, and what nobody has seen, only the kernel's clock knows of.
TEST_P(SampledEnforcerTest, ShortChildrenThatNobodyWaitsForAreTheKnownWayOutOfLooks) {
  const Steps done;
  Make({[&] {
    (void)std::signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 300; ++i) {
      if (::fork() == 0) {
        Burn(0.002);
        ::_exit(0);
      }
      (void)::wait(nullptr);
    }
    done.Done();
    return Forever();
  }});
  Start(0, Cpu(milliseconds(400)));
  if (source_->sandbox().task_clock) {
    EXPECT_TRUE(AwaitHit());
  } else {
    ASSERT_TRUE(done.Await());
    EXPECT_FALSE(AwaitHit(0, milliseconds(100)));
    EXPECT_LT(Finish().cpu_time.value(), milliseconds(400));
  }
}

// The kernel's clock loses a program that may not be read; looks find it while it lives.
TEST_P(SampledEnforcerTest, ProgramThatMayNotBeReadIsFoundByLooks) {
  const LimitHit hit = HitOf(
      [] {
        // The first shell has no capability any more to read it all the same.
        (void)::execl("/bin/sh", "sh", "-c",
                      "cp /bin/sh /dev/shm/x; chmod 111 /dev/shm/x;"
                      "exec /dev/shm/x -c 'while :; do :; done'",
                      nullptr);
        return 1;
      },
      Cpu(milliseconds(400)));
  EXPECT_EQ(hit.cause, Cause::kCpuTime);
  EXPECT_GE(hit.observed, 400U);
  EXPECT_LE(hit.observed, 550U);
}

// A lower bound on the whole: RLIMIT_CPU ends each process when nobody looks any more.
TEST_P(SampledEnforcerTest, BackstopAndProcessesAreCarriedByTheWorkload) {
  Make({[] { return 0; }});
  auto enforcer = *source_->Make();
  ASSERT_TRUE(enforcer->Adopt(space_->child(0), ChildRole::kBecomesProgram));
  CarriedLimits carried{.cpu_seconds = 100, .processes = 5};
  ASSERT_TRUE(enforcer->Begin({.cpu_time = milliseconds(2500), .pids = 9}, carried));
  EXPECT_EQ(carried.cpu_seconds, 4U);
  EXPECT_EQ(carried.processes, 5U) << "the lower of both";
}

// ---- memory

TEST_P(SampledEnforcerTest, MemoryBombIsMet) {
  const LimitHit hit = HitOf(
      [] {
        for (int i = 0; i < 400; ++i) Take(kMiB);
        return Forever();
      },
      Memory(64 * kMiB));
  EXPECT_EQ(hit.cause, Cause::kMemory);
  EXPECT_EQ(hit.limit, 64 * kMiB);
  EXPECT_GT(hit.observed, 64 * kMiB);
  RecordProperty("observed", std::to_string(hit.observed));
}

TEST_P(SampledEnforcerTest, MemoryOfManyProcessesAddsUp) {
  const LimitHit hit = HitOf(
      [] {
        for (int i = 0; i < 8; ++i) {
          if (::fork() == 0) {
            (void)::setsid();
            Take(16 * kMiB);
            Forever();
          }
        }
        return 0;  // All of them are orphans then.
      },
      Memory(64 * kMiB));
  EXPECT_EQ(hit.cause, Cause::kMemory);
}

// Double fork between two looks: nobody knows whose it is, so it counts where anything runs.
TEST_P(SampledEnforcerTest, OrphanThatNobodySawIsMet) {
  const LimitHit hit = HitOf(
      [] {
        if (::fork() == 0) {
          (void)::setsid();
          if (::fork() == 0) {
            (void)::setsid();
            Take(128 * kMiB);
            Forever();
          }
          ::_exit(0);
        }
        return Forever();
      },
      Memory(64 * kMiB));
  EXPECT_EQ(hit.cause, Cause::kMemory);
}

TEST_P(SampledEnforcerTest, MemfdAndSharedFilesAreMet) {
  const LimitHit hit = HitOf(
      [] {
        const int memfd = ::memfd_create("x", 0);
        if (::posix_fallocate(memfd, 0, 40 * kMiB) != 0) return 1;
        const int file = ::open("/dev/shm/x", O_RDWR | O_CREAT, 0600);
        if (::posix_fallocate(file, 0, 40 * kMiB) != 0) return 1;
        return Forever();
      },
      Memory(64 * kMiB));
  EXPECT_EQ(hit.cause, Cause::kMemory);
}

TEST_P(SampledEnforcerTest, MemoryTakenAfterALongSleepIsMet) {
  const auto begin = std::chrono::steady_clock::now();
  const LimitHit hit = HitOf(
      [] {
        (void)::usleep(500'000);
        Take(128 * kMiB);
        return Forever();
      },
      Memory(64 * kMiB));
  EXPECT_EQ(hit.cause, Cause::kMemory);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
}

// C026: a child that has taken its memory and ended between two looks leaves no trace.
TEST_P(SampledEnforcerTest, ChildThatIsQuickerThanTheLooksIsAKnownWayOut) {
  Make({[] {
    (void)::usleep(300'000);  // Looks are rare by now.
    const pid_t child = ::fork();
    if (child == 0) {
      Take(68 * kMiB);
      ::_exit(0);
    }
    (void)::waitpid(child, nullptr, 0);
    return 0;
  }});
  Start(0, Memory(64 * kMiB));
  ASSERT_TRUE(space_->AwaitEnd());
  const Enforced enforced = Finish();
  // It may be seen by chance; what must not happen is a hit below the limit.
  if (enforced.hit) {
    EXPECT_GT(enforced.hit->observed, 64 * kMiB);
  }
}

// C082: and the sandbox is usable after a hit.
TEST_P(SampledEnforcerTest, LimitsAndUseAreOfOneExecution) {
  Make({[] {
          Take(100 * kMiB);
          return Forever();
        },
        [] {
          Take(16 * kMiB);
          Burn(0.1);
          return 0;
        }});
  Start(0, Memory(64 * kMiB));
  ASSERT_TRUE(AwaitHit(0));
  space_->KillChild(0);
  ASSERT_TRUE(space_->AwaitEnd());
  EXPECT_TRUE(Finish(0).hit);
  Start(1, {.cpu_time = seconds(3), .memory = Bytes{64 * kMiB}});
  ASSERT_TRUE(space_->AwaitEnd());
  const Enforced second = Finish(1);
  EXPECT_FALSE(second.hit);
  EXPECT_LT(Count(second.peak_memory.value()), 60 * kMiB);
  EXPECT_LT(second.cpu_time.value(), milliseconds(400));
}

TEST_P(SampledEnforcerTest, TwoAtOnceDoNotPayForEachOther) {
  const std::array<Steps, 2> looked_at;
  Make({[&] {
          (void)looked_at[0].Await();
          Take(40 * kMiB);
          return Forever();
        },
        [&] {
          (void)looked_at[1].Await();
          Take(40 * kMiB);
          Burn(100);
          return 0;
        }});
  // This init starts children as a sandbox's adopts orphans. Those of an execution that nobody has
  // looked at yet may be anybody's, so they have nothing yet.
  for (std::size_t i = 0; i < looked_at.size(); ++i) {
    Start(i, {.cpu_time = milliseconds(300), .memory = Bytes{64 * kMiB}});
    ASSERT_TRUE(AwaitLook(i));
  }
  for (const Steps& steps : looked_at) steps.Done();
  ASSERT_TRUE(AwaitHit(1));
  EXPECT_EQ(Finish(1).hit->cause, Cause::kCpuTime);
  const Enforced other = Finish(0);
  EXPECT_FALSE(other.hit) << (other.hit->cause == Cause::kMemory ? "memory " : "time ")
                          << other.hit->observed;
  EXPECT_LT(other.cpu_time.value(), milliseconds(200));
}

// ---- what it costs

std::chrono::nanoseconds UsedByThisProcess() {
  timespec now{};
  (void)::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// What waking up ten times a second costs by itself, on a machine as busy as this one is now.
std::chrono::nanoseconds TenWakes() {
  std::mutex mu;
  std::condition_variable never;
  std::unique_lock lock(mu);
  const auto before = UsedByThisProcess();
  for (int i = 0; i < 10; ++i) (void)never.wait_for(lock, milliseconds(20));
  return UsedByThisProcess() - before;
}

/// What it costs to read about every process of the host, of which others may start more.
std::chrono::nanoseconds ReadingOfAllProcesses() {
  const auto before = UsedByThisProcess();
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (std::isdigit(entry.path().filename().native().front()) == 0) continue;
    std::string line;
    std::getline(std::ifstream(entry.path() / "stat"), line);
  }
  return UsedByThisProcess() - before;
}

TEST_P(SampledEnforcerTest, IdleTreeCostsHardlyMoreThanWakingUp) {
  Make({Forever});
  const auto wakes = TenWakes();
  Start(0, {.cpu_time = seconds(5), .memory = Bytes{64 * kMiB}});
  const auto hit = hits_[0].get_future();
  EXPECT_EQ(hit.wait_for(milliseconds(800)), std::future_status::timeout);  // Looks are rare then.
  const auto before = UsedByThisProcess();
  constexpr seconds kSpan(2);
  EXPECT_EQ(hit.wait_for(kSpan), std::future_status::timeout);
  const auto cost = (UsedByThisProcess() - before) / kSpan.count();
  RecordProperty("microseconds_per_second", std::to_string(cost.count() / 1000));
  RecordProperty("ten_wakes", std::to_string(wakes.count() / 1000));
  // Once a second there is a look all the same, and of a whole host it is as long as the host is
  // large.
  const auto all = GetParam() == Way::kWholeHost ? ReadingOfAllProcesses() : milliseconds(0);
  RecordProperty("reading_of_all", std::to_string(all.count() / 1000));
  EXPECT_LT(cost, milliseconds(3) + 3 * all + 2 * wakes);
  (void)Finish();
}

}  // namespace
}  // namespace palmshed::backends::native
