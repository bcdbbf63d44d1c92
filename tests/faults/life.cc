#include "faults/life.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <regex>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "faults/course.h"
#include "palmshed/palmshed.h"
#include "support/filtered_rung.h"
#include "support/kernel_test.h"
#include "support/process.h"

namespace palmshed::tests {
namespace {

/// More than any of them needs, less than a call may take.
constexpr Millis kLongest{8'000};
constexpr std::string_view kWorked = "worked";
constexpr std::string_view kError = "error";
constexpr std::string_view kCan = "can ";

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? '|' : c;
  return line;
}

/// The probe's refusals without the errno, which differs between ways to make a sandbox.
std::string WithoutErrno(std::string text) {
  constexpr std::string_view kRefused = "REFUSED ";
  for (std::size_t at = 0; (at = text.find(kRefused, at)) != text.npos;) {
    at += kRefused.size() - 1;
    text.erase(at, text.find('|', at) - at);
  }
  return text;
}

std::string Describe(const Error& error) {
  return std::string(ToString(error.code)) + " op=" + error.op +
         " remedy=" + OneLine(error.remedy) + " message=" + OneLine(error.message);
}

/// What is carried over of the limit on CPU time is less for what has been used.
std::string WithoutSeconds(const std::string& text) {
  static const std::regex kSeconds("rlimit-cpu [0-9]+ [0-9]+");
  return std::regex_replace(text, kSeconds, "rlimit-cpu n n");
}

/// Without namespaces a program sees where its workspace is on the host.
std::string WithoutPlace(const std::string& text) {
  static const std::regex kPlace("cwd /[^|]*/sbx_[0-9a-f]+/");
  return std::regex_replace(text, kPlace, "cwd /");
}

std::string DescribeEnd(const ExecResult& result) {
  std::ostringstream text;
  text << ToString(result.termination.cause) << " stage=" << result.termination.stage
       << " exit=" << result.exit_code;
  return text.str();
}

std::string Describe(const ExecResult& result) {
  const std::string out = WithoutPlace(WithoutSeconds(WithoutErrno(OneLine(result.out.bytes))));
  return DescribeEnd(result) + " out=" + out + " err=" + OneLine(result.err.bytes);
}

struct Program {
  std::string name;
  std::vector<std::string> argv;
  bool says_the_same = true;  ///< Each time.
  ExecOptions options{};
};

/// One call's line: "<call> worked" or "<call> error <why>". True when it worked.
template <class T>
bool Note(const Progress& progress, std::string_view call, const Result<T>& result) {
  std::string line(call);
  line += ' ';
  line += result ? std::string(kWorked) : std::string(kError) + " " + Describe(result.error());
  progress.Report(line);
  return result.has_value();
}

SandboxOptions OptionsOf(const Life& life, const Surroundings& surroundings) {
  if (life.storage != Storage::kDisk) {
    return {.disk_quota = 16_MiB, .timeout = kLongest, .storage = life.storage};
  }
  if (life.files) {
    return {.timeout = kLongest, .mounts = {{.source = surroundings.shown, .target = "/shown"}}};
  }
  if (!life.limited) return {.timeout = kLongest};
  return {.cpu_time_limit = kLongest,
          .memory = 48_MiB,
          .disk_quota = 16_MiB,
          .timeout = kLongest,
          .pids = 8};
}

/// Everything that a program must not reach, and what it inherits.
std::string Script(const Surroundings& surroundings) {
  return "./probe attributes; ./probe call add_key; ./probe call unshare-user; ./probe call mount;"
         " ./probe read " +
         surroundings.secret + "; ./probe tcp 127.0.0.1 " + surroundings.port +
         "; ./probe open-for-writing /etc/passwd; echo end";
}

/// What they say depends on all that they are given.
std::vector<Program> FedPrograms() {
  std::string line(kTyped, 'x');
  line.back() = '\n';
  return {
      {.name = "typed",
       .argv = {"sh", "-c", "read line; echo got $line; exec cat"},
       .options = {.stdin_bytes = line, .tty = TerminalSize{}}},
      {.name = "fed", .argv = {"wc", "-c"}, .options = {.stdin_bytes = std::string(kFed, 'x')}}};
}

std::vector<Program> ProgramsOf(const Life& life, const Surroundings& surroundings) {
  if (life.feeds) return FedPrograms();
  if (life.files) {
    return {
        {.name = "look",
         .argv = {"sh", "-c",
                  "cat /shown/file sent copy/file; (echo >/shown/file) 2>&- || echo read-only"}}};
  }
  std::vector<Program> programs{{.name = "script", .argv = {"sh", "-c", Script(surroundings)}},
                                {.name = "processes", .argv = {"./probe", "processes", "12"}},
                                {.name = "echo", .argv = {"sh", "-c", "echo x > f; cat f"}}};
  // Whoever samples may be late, and then it has said that it has what it must not have.
  if (life.limited) {
    programs.push_back(
        {.name = "memory", .argv = {"./probe", "touch-and-stay", "96"}, .says_the_same = false});
  }
  return programs;
}

/// Each call of the library that is about files. It stops at the first that fails, since each rests
/// on those before, and what comes later on all of them. True when none did.
bool UseFiles(const Surroundings& surroundings, const Progress& progress, Sandbox& sandbox) {
  progress.Enter(Phase::kExec);
  const bool made =
      Note(progress, "make", sandbox.MakeDirectory("tree/deep")) &&
      Note(progress, "write", sandbox.WriteFile("tree/deep/first", "of the tree")) &&
      Note(progress, "move", sandbox.Move("tree/deep/first", "tree/file")) &&
      Note(progress, "chmod", sandbox.Chmod("tree/file", 0640)) &&
      Note(progress, "send", sandbox.UploadFile(surroundings.shown + "/file", "sent"));
  if (!made) return false;
  MemorySink archive;
  if (!Note(progress, "down", sandbox.DownloadArchive("tree", archive))) return false;
  MemorySource source(std::as_bytes(std::span(archive.bytes())));
  if (!Note(progress, "up", sandbox.UploadArchive("copy", source))) return false;
  const auto read = sandbox.ReadFile("copy/file");
  const auto names = sandbox.List("copy");
  const auto facts = sandbox.Stat("copy/file");
  if (!Note(progress, "read", read) || !Note(progress, "list", names)) return false;
  if (!Note(progress, "stat", facts) || !Note(progress, "remove", sandbox.Remove("tree", true))) {
    return false;
  }
  std::ostringstream seen;
  seen << "ran files " << *read << " " << std::oct << facts->mode;
  for (const DirEntry& entry : *names) seen << " " << entry.name;
  progress.Report(seen.str());
  return true;
}

void RunPrograms(const Life& life, const Surroundings& surroundings, const Progress& progress,
                 Sandbox& sandbox) {
  progress.Enter(Phase::kExec);
  if (!Note(progress, "write", sandbox.WriteFile("probe", surroundings.probe, 0755))) return;
  if (life.files && !UseFiles(surroundings, progress, sandbox)) return;
  for (const Program& program : ProgramsOf(life, surroundings)) {
    progress.Enter(Phase::kExec);
    const auto run = sandbox.Run(program.argv, program.options);
    if (run) {
      progress.Report("ran " + program.name + " " +
                      (program.says_the_same ? Describe(*run) : DescribeEnd(*run)));
    } else {
      (void)Note(progress, "run", run);
    }
  }
}

/// With a self-test of each control.
void AskForCapabilities(const Progress& progress, Engine& engine) {
  progress.Enter(Phase::kExec);
  const auto capabilities = engine.GetCapabilities("native", true);
  if (!Note(progress, "capabilities", capabilities)) return;
  for (const Control& control : capabilities->controls) {
    if (control.works) progress.Report(std::string(kCan) + control.name);
  }
}

void LeaveFork(bool forks) {
  if (!forks) return;
  if (::fork() == 0) ChildHost::StayForEver();
}

/// The first attempt may still meet a launcher that is dead.
void ShowThatItWorks(const Progress& progress, std::optional<Engine>& engine,
                     const Surroundings& surroundings) {
  progress.Enter(Phase::kAfter);
  if (!engine) {
    auto made = Engine::Create({.workspace_root = surroundings.workspaces});
    if (!Note(progress, "engine-after", made)) return;
    engine.emplace(*std::move(made));
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    progress.Enter(Phase::kAfter);
    auto sandbox = engine->CreateSandbox();
    if (!Note(progress, "create-after", sandbox)) continue;
    const auto run = sandbox->Run({"echo", "healthy"}, {.timeout = kLongest});
    const auto destroyed = sandbox->Destroy();
    if (!Note(progress, "run-after", run) || !Note(progress, "destroy-after", destroyed)) return;
    progress.Report(run->out.bytes == "healthy\n" ? "healthy" : "sick " + Describe(*run));
    return;
  }
}

void UseSandbox(const Life& life, const Surroundings& surroundings, const Progress& progress,
                Engine& engine) {
  std::optional<Sandbox> first;
  if (life.launched) {
    // An engine makes the first of its kind itself.
    progress.Enter(Phase::kBefore);
    auto made = engine.CreateSandbox();
    if (!Note(progress, "first", made)) return;
    first.emplace(*std::move(made));
  }
  progress.Enter(Phase::kCreate);
  auto sandbox = engine.CreateSandbox(OptionsOf(life, surroundings));
  if (!Note(progress, "create", sandbox)) return;
  if (life.asks) {
    AskForCapabilities(progress, engine);
  } else {
    RunPrograms(life, surroundings, progress, *sandbox);
  }
  progress.Enter(Phase::kDestroy);
  (void)Note(progress, "destroy", sandbox->Destroy());
}

bool IsClear(const std::string& error) {
  // A source that may not be opened is a mistake of the caller's, and is named. Nothing else is.
  if (error.starts_with("INVALID_OPTIONS ")) {
    return error.find("mounts[0].source") != error.npos && error.ends_with(": Permission denied");
  }
  constexpr std::array<std::string_view, 6> kCodes{"OVERLOADED",   "UNSUPPORTED", "FS_ERROR",
                                                   "BACKEND_LOST", "UNKNOWN",     "EXEC_FAILED"};
  const std::string code = error.substr(0, error.find(' '));
  const bool says = !error.ends_with("message=");
  const bool names = error.find("op= ") == error.npos || code == "BACKEND_LOST" ||
                     error.find("remedy= ") == error.npos;
  return std::ranges::find(kCodes, code) != kCodes.end() && says && names;
}

/// A program that did not run as it should, and whose result says whose fault it was.
bool IsClearEnd(std::string_view run) {
  const bool names = run.starts_with("startup_failed ") || run.starts_with("internal ");
  return run.starts_with("backend_lost ") || (names && run.find("stage= ") == run.npos);
}

/// Where root is refused a user namespace, the sandbox's own uid is one of the host's.
std::string WithUsualIds(const std::string& line) {
  static const std::regex kIds(R"(([UG]id):(\t[1-9][0-9]{3,}){4})");
  return std::regex_replace(line, kIds, "$1:\t1000\t1000\t1000\t1000");
}

/// Where an ordinary user is refused namespaces, /proc is out of reach, and paths are the host's.
std::string WithoutWhatIsOfProc(const std::string& line) {
  static const std::regex kOfProc(R"([A-Za-z]+:\t[^|]*\||oom_score_adj [^|]*\||cwd [^|]*)");
  return std::regex_replace(line, kOfProc, "");
}

bool RanAsExpected(const std::string& line, const Expectation& expected) {
  const auto is_among = [&](const std::string& text) {
    return std::ranges::find(expected.runs, text) != expected.runs.end();
  };
  if (is_among(line)) return true;
  if (!expected.maybe_other_way) return false;
  if (line.find("Uid:") != line.npos) return is_among(WithUsualIds(line));
  return std::ranges::any_of(expected.runs, [&](const std::string& run) {
    return WithoutWhatIsOfProc(run) == WithoutWhatIsOfProc(line);
  });
}

std::string JudgeLine(const std::string& line, const Expectation& expected) {
  if (line.starts_with(kCan)) {
    const bool known = std::ranges::find(expected.runs, line) != expected.runs.end();
    return known ? "" : "what is not so: " + line;
  }
  if (line.starts_with("ran ")) {
    if (RanAsExpected(line, expected)) return "";
    const std::string run = line.substr(line.find(' ', sizeof "ran") + 1);
    const bool killed = (run + " ").starts_with("signaled stage= exit=137 ");
    const bool clear = IsClearEnd(run) || (expected.maybe_killed && killed);
    return clear ? "" : "a program did not run as it should: " + line;
  }
  const std::size_t error = line.find(" error ");
  if (error != line.npos) {
    return IsClear(line.substr(error + sizeof " error")) ? "" : "not a clear error: " + line;
  }
  const bool well = line.ends_with(" worked") || line == "healthy";
  return well ? "" : "not well: " + line;
}

}  // namespace

bool Life::IsPossible() const {
  if (storage == Storage::kLoop) return HasLoopDevices();
  return !filtered || (::geteuid() != 0 && HasLandlockScopes());
}

std::chrono::seconds PatienceWith(const Life& life) {
  // A self-test whose limit does not hold waits five seconds for each such limit.
  return std::chrono::seconds(life.asks ? 30 : 10);
}

Rounds RoundsOf(const Life& life, std::size_t usual) {
  // A self-test takes seconds, and makes most of the calls over and over.
  constexpr std::size_t kMostSelfTests = 400;
  if (life.asks) return {.usual = 1, .most = kMostSelfTests};
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  if (life.storage != Storage::kDisk || life.files) return {.usual = 1, .most = kMost};
  const bool plain = !life.limited && !life.filtered;
  return {.usual = plain ? usual : (usual + 1) / 2, .most = kMost};
}

void Live(const Life& life, const Surroundings& surroundings, const Progress& progress,
          bool forks) {
  if (life.filtered && !RefuseNamespaces()) throw std::runtime_error("namespaces are not refused");
  std::optional<Engine> engine;
  progress.Enter(Phase::kCreate);
  auto made = Engine::Create({.workspace_root = surroundings.workspaces});
  if (Note(progress, "engine", made)) {
    engine.emplace(*std::move(made));
    UseSandbox(life, surroundings, progress, *engine);
  }
  LeaveFork(forks);
  ShowThatItWorks(progress, engine, surroundings);
  progress.Enter(Phase::kClose);
  engine.reset();
  progress.Enter(Phase::kAfter);
  progress.Report("closed worked");
}

std::vector<std::string> RunsOf(const std::vector<std::string>& report) {
  std::vector<std::string> runs;
  for (const std::string& line : report) {
    if (line.starts_with("ran ") || line.starts_with(kCan)) runs.push_back(line);
  }
  return runs;
}

std::string Judge(const Course& course, const Expectation& expected) {
  if (!course.hung.empty()) return "it hung in phase " + course.hung;
  if (!course.ended.empty()) return "the host program ended: " + course.ended;
  for (const std::string& line : course.report) {
    if (std::string wrong = JudgeLine(line, expected); !wrong.empty()) return wrong;
  }
  const bool healthy = std::ranges::count(course.report, "healthy") == 1;
  return healthy ? "" : "the engine does not work afterwards";
}

}  // namespace palmshed::tests
