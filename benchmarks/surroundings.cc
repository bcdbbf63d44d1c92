// What things cost in a process with much memory, and on a host with many mounts.
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/die.h"
#include "benchmarks/figure.h"
#include "benchmarks/scratch.h"
#include "benchmarks/subject.h"
#include "palmshed/palmshed.h"

namespace palmshed::benchmarks {
namespace {

std::vector<Figure> NewEngineAt(const Heading& heading, double at, const Settings& settings) {
  Engine engine = Must(Engine::Create());
  Sandbox live = Must(engine.CreateSandbox());
  return CostsAt(heading, at, engine, live, settings);
}

/// Memory that has a page behind every address.
class Resident {
 public:
  explicit Resident(std::size_t size)
      : size_(size),
        memory_(::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) DieErrno("mmap");
    // Small pages, as a heap that has grown over time has them: they are what fork has to copy.
    (void)::madvise(memory_, size, MADV_NOHUGEPAGE);
    std::memset(memory_, 1, size);
  }
  ~Resident() { (void)::munmap(memory_, size_); }
  Resident(const Resident&) = delete;
  Resident& operator=(const Resident&) = delete;

 private:
  std::size_t size_;
  void* memory_;
};

/// Mounts that this process and those that it starts see, and nobody else. They go with the object,
/// so that the directory that they are on can be removed.
class PrivateMounts {
 public:
  PrivateMounts() : top_(ScratchDirectory()) {
    if (::unshare(CLONE_NEWNS) != 0) DieErrno("unshare");
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) DieErrno("mount");
    if (::mount("none", top_.c_str(), "tmpfs", 0, nullptr) != 0) DieErrno("mount tmpfs");
  }
  ~PrivateMounts() { (void)::umount2(top_.c_str(), MNT_DETACH); }
  PrivateMounts(const PrivateMounts&) = delete;
  PrivateMounts& operator=(const PrivateMounts&) = delete;

  void GrowTo(int count) {
    for (; count_ < count; ++count_) {
      const std::string path = top_ + "/" + std::to_string(count_);
      if (::mkdir(path.c_str(), 0755) != 0) DieErrno("mkdir");
      if (::mount("none", path.c_str(), "tmpfs", 0, nullptr) != 0) DieErrno("mount tmpfs");
    }
  }

 private:
  std::string top_;
  int count_ = 0;
};

}  // namespace

std::vector<Figure> MeasureResident(const Settings& settings) {
  const Heading heading{.measure = "growth", .axis = "MiB resident", .unit = "us"};
  std::vector<Figure> figures = NewEngineAt(heading, 0, settings);
  for (const std::size_t mebibytes : {128U, 1024U}) {
    if (settings.small && mebibytes > 128U) break;
    const Resident resident(mebibytes << 20);
    Append(figures, NewEngineAt(heading, static_cast<double>(mebibytes), settings));
  }
  return figures;
}

std::vector<Figure> MeasureMounts(const Settings& settings) {
  if (::geteuid() != 0) Die("absent: mounting needs root");
  // Static, so that a run that fails leaves no mounts on the directory that it removes. The
  // engine's threads are made later, and so are in the namespace as well.
  static PrivateMounts mounts;
  const Heading heading{.measure = "growth", .axis = "more mounts on the host", .unit = "us"};
  std::vector<Figure> figures;
  for (const int count : {0, 100, 1000}) {
    mounts.GrowTo(count);
    Append(figures, NewEngineAt(heading, count, settings));
  }
  return figures;
}

}  // namespace palmshed::benchmarks
