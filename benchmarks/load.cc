// What runs inside a sandbox while output and limits are measured.
//
//   palmshed_load emit SIZE TOTAL   writes TOTAL bytes in writes of SIZE
//   palmshed_load memory            takes more and more memory
//   palmshed_load cpu               uses the processor for ever
//   palmshed_load disk              fills a file for ever
//
// The last three write a record before each step: the time of CLOCK_MONOTONIC in ns, and what has
// been used so far, in bytes or ns. Each is a number of 8 bytes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

namespace {

constexpr std::int64_t kStep = 65536;
constexpr std::int64_t kCpuStep = 500'000;  // ns

std::int64_t Nanoseconds(clockid_t clock) {
  timespec now{};
  (void)::clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void Tell(std::int64_t used) {
  const std::array<std::int64_t, 2> record{Nanoseconds(CLOCK_MONOTONIC), used};
  if (::write(1, record.data(), sizeof record) != sizeof record) std::exit(1);
}

int Emit(std::size_t size, std::size_t total) {
  const std::vector<char> block(size, 'x');
  for (std::size_t written = 0; written < total;) {
    const auto count = ::write(1, block.data(), size);
    if (count < 0) return 1;
    written += static_cast<std::size_t>(count);
  }
  return 0;
}

int TakeMemory() {
  for (std::int64_t used = 0;; used += kStep) {
    Tell(used);
    void* step = ::mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (step == MAP_FAILED) return 1;
    std::memset(step, 1, kStep);
  }
}

[[noreturn]] void UseProcessor() {
  for (std::int64_t next = 0;;) {
    const std::int64_t used = Nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
    if (used < next) continue;
    Tell(used);
    next = used + kCpuStep;
  }
}

int FillDisk() {
  const int file = ::open("full", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return 1;
  const std::vector<char> block(kStep, 'x');
  for (std::int64_t used = 0;; used += kStep) {
    Tell(used);
    if (::write(file, block.data(), block.size()) < 0) return 1;
  }
}

std::size_t Number(const char* text) { return std::strtoull(text, nullptr, 10); }

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "emit" && argc == 4) return Emit(Number(argv[2]), Number(argv[3]));
  if (verb == "memory") return TakeMemory();
  if (verb == "cpu") UseProcessor();
  if (verb == "disk") return FillDisk();
  return 2;
}
