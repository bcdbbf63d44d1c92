// A static program that helper tests run inside: it says what a workload inherits, and attacks the
// memory of init. Prints "name=value" lines.
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace {

void Print(const char* name, long value) { std::printf("%s=%ld\n", name, value); }

std::string FirstLine(const std::string& path) {
  char line[256] = "";
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    (void)!std::fgets(line, sizeof line, file);
    (void)std::fclose(file);
  }
  line[std::strcspn(line, "\n")] = '\0';
  return line;
}

// ---- inherited

void PrintOpenFds() {
  std::string open;
  for (int fd = 0; fd < 4096; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) open += (open.empty() ? "" : ",") + std::to_string(fd);
  }
  std::printf("fds=%s\n", open.c_str());
}

void PrintSignals() {
  int changed = 0;
  for (int signal = 1; signal <= 64; ++signal) {
    struct sigaction action{};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL) ++changed;
  }
  Print("dispositions", changed);
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  int blocked = 0;
  for (int signal = 1; signal <= 64; ++signal) blocked += ::sigismember(&mask, signal) == 1 ? 1 : 0;
  Print("blocked", blocked);
}

void PrintScheduling() {
  errno = 0;
  Print("nice", ::getpriority(PRIO_PROCESS, 0));
  Print("ioprio", ::syscall(SYS_ioprio_get, 1, 0));
  Print("policy", ::sched_getscheduler(0));
  Print("timerslack", ::prctl(PR_GET_TIMERSLACK));
  cpu_set_t cpus;
  (void)::sched_getaffinity(0, sizeof cpus, &cpus);
  Print("cpus", CPU_COUNT(&cpus));
  Print("online", ::sysconf(_SC_NPROCESSORS_ONLN));
}

int Inherited() {
  PrintOpenFds();
  PrintSignals();
  PrintScheduling();
  const mode_t mask = ::umask(0);
  Print("umask", mask);
  Print("personality", ::personality(0xffffffff));
  Print("securebits", ::prctl(PR_GET_SECUREBITS));
  Print("pdeathsig_unset", [] {
    int signal = -1;
    (void)::prctl(PR_GET_PDEATHSIG, &signal);
    return signal;
  }());
  Print("session_is_own", ::getsid(0) == ::getpid() ? 1 : 0);
  Print("groups", ::getgroups(0, nullptr));
  Print("uid", ::getuid());
  Print("gid", ::getgid());
  Print("tty", ::open("/dev/tty", O_RDWR | O_CLOEXEC) >= 0 ? 1 : 0);
  std::printf("oom_score_adj=%s\n", FirstLine("/proc/self/oom_score_adj").c_str());
  return 0;
}

int PrintLimit(const char* resource) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(std::atoi(resource)), &limit) != 0) return 1;
  std::printf("%llu %llu\n", static_cast<unsigned long long>(limit.rlim_cur),
              static_cast<unsigned long long>(limit.rlim_max));
  return 0;
}

// A connection to a listener of our own: works where lo is up.
int Loopback() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, generic, size) != 0 || ::listen(listener, 1) != 0) return 1;
  if (::getsockname(listener, generic, &size) != 0) return 1;
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = ::connect(client, generic, size) == 0;
  std::printf("%s\n", connected ? "connected" : std::strerror(errno));
  return 0;
}

// ---- keys

constexpr long kSessionKeyring = -3;
constexpr long kKeyctlSearch = 10;

int FindKey() {
  const long found = ::syscall(SYS_keyctl, kKeyctlSearch, kSessionKeyring, "user", "probe", 0);
  std::printf("%s\n", found >= 0 ? "found" : std::strerror(errno));
  return 0;
}

int AddKey() {
  const long added = ::syscall(SYS_add_key, "user", "probe", "x", 1, kSessionKeyring);
  std::printf("%s\n", added >= 0 ? "added" : std::strerror(errno));
  return added >= 0 ? FindKey() : 0;
}

// ---- attack

// The child of a vfork has init's name until its exec; init itself is number 1.
pid_t FindUnbornWorkload() {
  timespec started{};
  ::clock_gettime(CLOCK_MONOTONIC, &started);
  for (;;) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - started.tv_sec > 10) return -1;
    DIR* const proc = ::opendir("/proc");
    while (const dirent* entry = ::readdir(proc)) {
      const pid_t pid = std::atoi(entry->d_name);
      if (pid <= 1) continue;
      if (FirstLine("/proc/" + std::to_string(pid) + "/comm") != "palmshed-init") continue;
      ::closedir(proc);
      return pid;
    }
    ::closedir(proc);
  }
}

void Report(const char* what, bool done) {
  std::printf("%s=%s\n", what, done ? "open" : "refused");
}

// Tried on what any program has mapped: the stack of the process.
void AttackMemory(pid_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  const int memory = ::open((directory + "/mem").c_str(), O_RDWR | O_CLOEXEC);
  Report("mem", memory >= 0);
  unsigned long address = 0;
  if (std::FILE* maps = std::fopen((directory + "/maps").c_str(), "re")) {
    char line[512];
    while (std::fgets(line, sizeof line, maps) != nullptr) {
      if (std::strstr(line, "[stack]") != nullptr) address = std::strtoul(line, nullptr, 16);
    }
    (void)std::fclose(maps);
  }
  Report("maps", address != 0);
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{reinterpret_cast<void*>(address != 0 ? address + 4096 : 4096), 1};
  Report("process_vm_readv", ::process_vm_readv(pid, &local, 1, &remote, 1, 0) == 1);
  Report("process_vm_writev", ::process_vm_writev(pid, &local, 1, &remote, 1, 0) == 1);
}

void AttackFiles(pid_t pid) {
  const std::string directory = "/proc/" + std::to_string(pid);
  char target[PATH_MAX];
  Report("exe", ::readlink((directory + "/exe").c_str(), target, sizeof target) > 0);
  DIR* const fds = ::opendir((directory + "/fd").c_str());
  Report("fd", fds != nullptr);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  Report("pidfd_getfd", ::syscall(SYS_pidfd_getfd, pidfd, STDOUT_FILENO, 0) >= 0);
  Report("ptrace", ::ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0);
}

// While this process holds a program open for writing, its exec fails and is tried again for a
// while: so long stands the window in which the workload-to-be shares init's memory.
int Attack(const char* program) {
  if (::open(program, O_WRONLY | O_CLOEXEC) < 0) return 1;
  std::printf("up\n");
  std::fflush(stdout);
  const pid_t pid = FindUnbornWorkload();
  Print("found", pid > 0 ? 1 : 0);
  if (pid <= 0) return 1;
  AttackMemory(pid);
  AttackFiles(pid);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "inherited") return Inherited();
  if (command == "limit" && argc > 2) return PrintLimit(argv[2]);
  if (command == "loopback") return Loopback();
  if (command == "key-add") return AddKey();
  if (command == "key-find") return FindKey();
  if (command == "attack" && argc > 2) return Attack(argv[2]);
  return 2;
}
