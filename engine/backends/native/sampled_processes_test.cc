// What the limit on processes rests on where there are no control groups: RLIMIT_NPROC in a user
// namespace counts the processes and threads of that namespace's user in it, and of no other
// (Linux 5.14, user_namespaces(7)).
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "base/sys.h"
#include "base/unique_fd.h"
#include "kernel/test_namespace.h"

namespace palmshed::backends::native {
namespace {

using kernel::Steps;
using kernel::TestNamespace;

constexpr unsigned kTries = 60;
constexpr rlim_t kLimit = 20;
constexpr unsigned kThere = 3;  // Init, who made it, and the child itself.

unsigned Fork() {
  unsigned made = 0;
  for (unsigned i = 0; i < kTries; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)::setsid();  // No way out.
      while (true) ::pause();
    }
    if (child > 0) ++made;
    if (child < 0 && errno != EAGAIN) return 0;
  }
  return made;
}

void* Pause(void*) {
  while (true) ::pause();
}

unsigned MakeThreads() {
  unsigned made = 0;
  for (unsigned i = 0; i < kTries; ++i) {
    pthread_t thread{};
    if (::pthread_create(&thread, nullptr, Pause, nullptr) == 0) ++made;
  }
  return made;
}

// A sandbox in which `make` tries, and says how many it was given; they stay until it goes.
class Crowd {
 public:
  Crowd(rlim_t limit, unsigned (*make)())
      : answer_(*sys::Pipe()), space_({[this, limit, make] {
          const rlimit bound{limit, limit};
          if (::setrlimit(RLIMIT_NPROC, &bound) < 0) return 1;
          const unsigned made = make();
          (void)!::write(answer_.second.get(), &made, sizeof made);
          return end_.Await() ? 0 : 1;
        }}) {
    space_.Go(0);
  }
  unsigned made() const {
    unsigned count = 0;
    EXPECT_TRUE(*sys::WaitReadable(answer_.first.get(), 10'000));
    (void)!::read(answer_.first.get(), &count, sizeof count);
    return count;
  }

 private:
  sys::FdPair answer_;
  Steps end_;
  TestNamespace space_;
};

// C073
TEST(ProcessLimitWithoutGroups, ForksStopThere) {
  EXPECT_EQ(Crowd(kLimit, Fork).made(), kLimit - kThere);
  EXPECT_EQ(Crowd(1000, Fork).made(), kTries) << "the control";
}

TEST(ProcessLimitWithoutGroups, ThreadsCountAsProcessesDo) {
  EXPECT_EQ(Crowd(kLimit, MakeThreads).made(), kLimit - kThere);
  EXPECT_EQ(Crowd(1000, MakeThreads).made(), kTries) << "the control";
}

// C048
TEST(ProcessLimitWithoutGroups, SandboxesDoNotStarveEachOther) {
  std::vector<std::unique_ptr<Crowd>> crowds;
  crowds.reserve(4);
  for (int i = 0; i < 4; ++i) crowds.push_back(std::make_unique<Crowd>(kLimit, Fork));
  for (const auto& crowd : crowds) EXPECT_EQ(crowd->made(), kLimit - kThere);
}

}  // namespace
}  // namespace palmshed::backends::native
