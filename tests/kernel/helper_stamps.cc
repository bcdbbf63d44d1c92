// Prints where the time goes when the helper makes a sandbox and runs a program: the medians of the
// stamps that its answers carry, in microseconds. Usage: helper_stamps [rounds] [root|user]
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "support/helper_driver.h"

namespace palmshed::testing {
namespace {

constexpr const char* kCreateSteps[] = {"fetch trees", "clone", "maps", "until exec", "rest"};
constexpr const char* kInitSteps[] = {"config",
                                      "proc",
                                      "tmp",
                                      "shm, pts",
                                      "own names",
                                      "workspace",
                                      "storage",
                                      "host mounts",
                                      "names",
                                      "bounding set",
                                      "drop privileges",
                                      "landlock",
                                      "seccomp",
                                      "pool and first slot"};
constexpr const char* kExecSteps[] = {"parse", "vfork until exec", "run", "leftovers"};

std::uint64_t NowNs() {
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

class Samples {
 public:
  void Add(std::uint64_t ns) { all_.push_back(ns); }
  double MedianUs() {
    if (all_.empty()) return 0;
    std::sort(all_.begin(), all_.end());
    return static_cast<double>(all_[all_.size() / 2]) / 1000.0;
  }

 private:
  std::vector<std::uint64_t> all_;
};

template <std::size_t kCount>
class Table {
 public:
  explicit Table(const char* const (&names)[kCount]) : names_(names) {}
  void Add(const std::uint64_t* stamps) {
    for (std::size_t i = 0; i < kCount; ++i) steps_[i].Add(stamps[i + 1] - stamps[i]);
  }
  void Print(const char* title) {
    std::printf("%s\n", title);
    for (std::size_t i = 0; i < kCount; ++i) {
      std::printf("  %-20s %8.1f\n", names_[i], steps_[i].MedianUs());
    }
  }

 private:
  const char* const (&names_)[kCount];
  Samples steps_[kCount];
};

int Measure(int rounds, bool root) {
  LauncherProcess launcher({.root = root, .flags = child::kLauncherSpareNetwork});
  if (!launcher.ready()) return 1;
  Table create(kCreateSteps);
  Table init(kInitSteps);
  Table exec(kExecSteps);
  Samples whole_create;
  Samples whole_exec;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t start = NowNs();
    TestSandbox sandbox(&launcher, {});
    if (!sandbox.ok()) {
      std::fprintf(stderr, "%s\n", sandbox.why_not().c_str());
      return 1;
    }
    whole_create.Add(NowNs() - start);
    create.Add(sandbox.created()->stamps);
    init.Add(sandbox.ready()->stamps);
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t asked = NowNs();
      const Finished finished = sandbox.Run({.argv = {"/bin/true"}});
      whole_exec.Add(NowNs() - asked);
      exec.Add(finished.reply.stamps);
    }
  }
  create.Print("create, launcher");
  init.Print("create, init");
  exec.Print("exec of /bin/true");
  std::printf("whole create %.1f, whole exec %.1f\n", whole_create.MedianUs(),
              whole_exec.MedianUs());
  return 0;
}

}  // namespace
}  // namespace palmshed::testing

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  const bool root = argc > 2 ? std::strcmp(argv[2], "root") == 0 : ::getuid() == 0;
  return palmshed::testing::Measure(rounds, root);
}
