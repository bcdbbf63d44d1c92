// The driver with one deliberate defect, named by PALMSHED_MUTANT; mutants.toml lists them with the
// case that must notice each. Some are defects of the engine (engine/base/faults.h), the rest are
// made here: in what is asked of the engine, in what is answered, or beside it.
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/cpp/base64.h"
#include "drivers/cpp/distortion.h"

namespace palmshed::conformance {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

// ---- In what is asked of the engine

object& Options(object& request) {
  value& options = request["options"];
  if (!options.is_object()) options = object();
  return options.get_object();
}

/// Runs the program by way of a shell script, which gets the program and its arguments.
void RunThrough(object& request, std::string_view script) {
  array words{"/bin/sh", "-c", value(script), "sh"};
  if (value* args = request.if_contains("args"); args != nullptr && args->is_array()) {
    for (const value& word : args->get_array()) words.push_back(word);
  } else if (const value* command = request.if_contains("command"); command != nullptr) {
    for (const value& word : array{"/bin/sh", "-c", *command}) words.push_back(word);
  }
  request.erase("command");
  request["args"] = std::move(words);
}

void KeepADescriptor(object& request) { RunThrough(request, R"(exec 9</dev/null; exec "$@")"); }
void InheritTheMask(object& request) { RunThrough(request, R"(umask 0; exec "$@")"); }
void IgnoreASignal(object& request) { RunThrough(request, R"(trap "" PIPE; exec "$@")"); }

void SplitArguments(object& request) {
  const value* args = request.if_contains("args");
  if (args == nullptr || !args->is_array()) return;
  std::string command;
  for (const value& word : args->get_array()) {
    if (word.is_string()) command += (command.empty() ? "" : " ") + std::string(word.get_string());
  }
  request.erase("args");
  request["command"] = command;
}

void LeakAVariable(object& request) {
  const char* options = std::getenv("NODE_OPTIONS");
  value& variables = Options(request)["env"];
  if (!variables.is_object()) variables = object();
  if (options != nullptr) variables.get_object()["NODE_OPTIONS"] = options;
}

void IgnoreTheTimeout(object& request) { Options(request).erase("timeout"); }
void IgnoreInput(object& request) { Options(request).erase("stdin"); }
void IgnoreTheTerminal(object& request) { Options(request).erase("tty"); }
void IgnoreTheDirectory(object& request) { Options(request).erase("workDir"); }
void GiveUpTheView(object& request) { Options(request)["osFilesystemIsolation"] = false; }
void IgnoreTheMode(object& request) { request.erase("mode"); }

void IgnoreLimitsOfTheCall(object& request) {
  for (const std::string_view limit : {"maxEntries", "maxBytes", "timeout"}) request.erase(limit);
}

void IgnoreCpuTime(object& request) { Options(request).erase("cpuTimeLimit"); }
void IgnoreMemory(object& request) { Options(request).erase("memory"); }
void IgnorePids(object& request) { Options(request).erase("pids"); }
void IgnoreTheDiskQuota(object& request) { Options(request).erase("diskQuota"); }

/// As if the sandbox's limits were no ceiling.
void RaiseTheCeiling(object& request) {
  for (const std::string_view limit : {"timeout", "maxOutputBytes"}) Options(request).erase(limit);
}

void AcceptUnknownOptions(object& request) {
  constexpr std::array<std::string_view, 21> kKnown = {
      "backend",     "cpu",         "cpuQuota", "cpuTimeLimit", "memory",  "diskQuota",
      "timeout",     "network",     "env",      "image",        "workDir", "pids",
      "mounts",      "degraded",    "proxyUrl", "name",         "labels",  "osFilesystemIsolation",
      "idleTimeout", "maxLifetime", "storage"};
  object kept;
  for (const auto& [name, option] : Options(request)) {
    for (const std::string_view known : kKnown) {
      if (known == name) kept[name] = option;
    }
  }
  Options(request) = std::move(kept);
}

std::mutex first_mu;
std::string first_sandbox;  // Guarded by first_mu.

void RememberTheFirst(object& answer) {
  const std::scoped_lock lock(first_mu);
  if (first_sandbox.empty()) first_sandbox = answer["sandbox"].as_string();
}

void AskTheFirst(object& request) {
  const std::scoped_lock lock(first_mu);
  if (!first_sandbox.empty()) request["sandbox"] = first_sandbox;
}

// ---- In what is answered

object& Result(object& answer) { return answer["result"].as_object(); }
object& Termination(object& answer) { return Result(answer)["termination"].as_object(); }
object& Metadata(object& answer) { return Result(answer)["metadata"].as_object(); }

bool HasCause(object& answer, std::string_view cause) {
  return Termination(answer)["cause"] == value(cause);
}

void SayKilledIsFine(object& answer) {
  if (!HasCause(answer, "signaled")) return;
  Result(answer)["exitCode"] = 0;
  Metadata(answer)["exitCode"] = 0;
  Result(answer)["status"] = "completed";
  Termination(answer) = object{{"cause", "exited"}};
}

void SayKilledHasExited(object& answer) {
  if (HasCause(answer, "signaled")) Termination(answer) = object{{"cause", "exited"}};
}

void SayTimeoutIsASignal(object& answer) {
  if (HasCause(answer, "wall_timeout")) Termination(answer)["cause"] = "signaled";
}

bool LimitDecided(object& answer) {
  return HasCause(answer, "memory") || HasCause(answer, "cpu_time") || HasCause(answer, "disk");
}

/// As a result looks that was read from the exit code alone.
void SayLimitIsASignal(object& answer) {
  if (!LimitDecided(answer)) return;
  Result(answer).erase("error");
  Result(answer)["exitCode"] = 137;
  Metadata(answer)["exitCode"] = 137;
  Termination(answer) = object{{"cause", "signaled"}, {"signal", 9}};
}

void DropOutputAtLimit(object& answer) {
  if (LimitDecided(answer)) Result(answer)["stdout"] = "";
}

void SayItStartedIn1970(object& answer) {
  Metadata(answer)["startedAt"] = "1970-01-01T00:00:00.000Z";
}

void SayNothingIsCut(object& answer) { Result(answer)["truncated"] = false; }

void LoseStderr(object& answer) {
  Result(answer)["stderr"] = "";
  Result(answer)["stderrTotalBytes"] = 0;
}

void MixStreams(object& answer) {
  const std::string both = std::string(Result(answer)["stdout"].as_string()) +
                           std::string(Result(answer)["stderr"].as_string());
  Result(answer)["stdout"] = both;
  LoseStderr(answer);
}

void LoseTheLastByte(object& answer) {
  boost::json::string& text = Result(answer)["stdout"].as_string();
  if (!text.empty() && Result(answer)["stdoutEncoding"] == value("utf-8")) text.pop_back();
}

void SayItTookNoTime(object& answer) {
  Result(answer)["durationMs"] = 0;
  Metadata(answer)["durationMs"] = 0;
}

void SayNoMemoryWasUsed(object& answer) {
  Result(answer)["peakMemoryBytes"] = 0;
  Result(answer)["cpuTimeMs"] = 0;
}

void ConcedeSilently(object& answer) { Result(answer)["weaker"] = array(); }

void RepeatTheStream(object& answer) {
  if (answer["next"].is_int64() && answer["next"].as_int64() > 0) {
    answer["next"] = answer["next"].as_int64() - 1;
  }
}

void SkipInTheStream(object& answer) {
  const auto bytes = FromBase64(answer["bytes"].as_string());
  if (bytes && bytes->size() > 1) answer["bytes"] = ToBase64(bytes->substr(1));
}

void ListBackwards(object& answer) {
  array& entries = answer["entries"].as_array();
  array reversed;
  while (!entries.empty()) {
    reversed.push_back(std::move(entries.back()));
    entries.pop_back();
  }
  entries = std::move(reversed);
}

/// Writes 0644 into the header of a tar that begins at `header`, and the sum of its bytes (POSIX,
/// "ustar Interchange Format").
void PutOneMode(std::string& tar, std::size_t header) {
  constexpr std::size_t kHeader = 512;
  constexpr std::size_t kMode = 100;
  constexpr std::size_t kChecksum = 148;
  tar.replace(header + kMode, 8, std::string_view("0000644\0", 8));
  tar.replace(header + kChecksum, 8, 8, ' ');
  unsigned int sum = 0;
  for (std::size_t i = 0; i < kHeader; ++i) sum += static_cast<unsigned char>(tar[header + i]);
  std::array<char, 8> digits{};
  (void)std::snprintf(digits.data(), digits.size(), "%06o", sum);  // Ignoring: it always fits.
  tar.replace(header + kChecksum, digits.size() - 1, digits.data(), digits.size() - 1);
}

void LoseModes(object& answer) {
  constexpr std::size_t kBlock = 512;
  constexpr std::size_t kSize = 124;
  auto tar = FromBase64(answer["bytes"].as_string());
  if (!tar) return;
  for (std::size_t at = 0; at + kBlock <= tar->size() && (*tar)[at] != '\0';) {
    PutOneMode(*tar, at);
    const std::size_t size = std::strtoull(tar->c_str() + at + kSize, nullptr, 8);
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  answer["bytes"] = ToBase64(*tar);
}

void PromiseLimits(object& answer) {
  object& capabilities = answer["capabilities"].as_object();
  capabilities["networkIsolation"] = true;
  capabilities["filesystemView"] = "host";
}

// ---- Beside it

void LeaveAProcess(object&) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string name = "sleep";
  std::string seconds = "30";
  std::array<char*, 3> words = {name.data(), seconds.data(), nullptr};
  pid_t pid = 0;
  (void)::posix_spawnp(&pid, name.data(), nullptr, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
}

void LeaveAFile(object&) {
  const char* state = std::getenv("XDG_STATE_HOME");  // The case's own, which the kit removes.
  const std::string path = std::string(state == nullptr ? "." : state) + "/left-behind";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
}

// ---- Which

using Change = void (*)(object&);

struct Mutant {
  std::string_view name;
  std::string_view op;       // "" for the engine's own.
  Change request = nullptr;  // Changes the request.
  Change answer = nullptr;   // Changes the answer.
  bool swallows = false;     // Answers without doing anything.
  const char* faults = "";   // Of the engine.
};

constexpr auto kMutants = std::to_array<Mutant>({
    {.name = "none", .op = ""},
    {.name = "none-without-groups",
     .op = "",
     .faults = "no-cgroups"},  // A kind of host, no defect.
    {.name = "no-seccomp", .op = "", .faults = "no-seccomp"},
    {.name = "host-view", .op = "", .faults = "host-view"},
    {.name = "writable-runtime", .op = "", .faults = "writable-runtime"},
    {.name = "host-network", .op = "", .faults = "host-network,no-landlock"},
    {.name = "inherit-env", .op = "", .faults = "inherit-env"},
    {.name = "no-rlimits", .op = "", .faults = "no-rlimits"},
    {.name = "follow-links", .op = "", .faults = "follow-links"},
    {.name = "no-collector", .op = "", .faults = "no-collector"},
    {.name = "no-cpu-limit", .op = "", .faults = "no-cpu-limit"},
    {.name = "cpu-of-main-only", .op = "", .faults = "cpu-of-main-only"},
    {.name = "no-cpu-quota", .op = "", .faults = "no-cpu-quota"},
    {.name = "no-memory-limit", .op = "", .faults = "no-memory-limit"},
    {.name = "oom-not-reported", .op = "", .faults = "oom-not-reported"},
    {.name = "page-cache-counts", .op = "", .faults = "page-cache-counts"},
    {.name = "leftovers-charged", .op = "", .faults = "leftovers-charged"},
    {.name = "limit-stays", .op = "", .faults = "limit-stays"},
    {.name = "limit-after-start", .op = "", .faults = "limit-after-start"},
    {.name = "no-pids-limit", .op = "", .faults = "no-pids-limit"},
    {.name = "disk-unmeasured", .op = "", .faults = "disk-unmeasured"},
    {.name = "deleted-files-are-free", .op = "", .faults = "deleted-files-are-free"},
    {.name = "inodes-are-free", .op = "", .faults = "inodes-are-free"},
    {.name = "fallocate-allowed", .op = "", .faults = "fallocate-allowed"},
    {.name = "api-over-quota", .op = "", .faults = "api-over-quota"},
    {.name = "no-sampled-cpu-limit", .op = "", .faults = "no-cgroups,no-cpu-limit"},
    {.name = "no-sampled-memory-limit", .op = "", .faults = "no-cgroups,no-memory-limit"},
    {.name = "no-sampled-pids-limit", .op = "", .faults = "no-cgroups,no-pids-limit"},
    {.name = "shared-counts-twice", .op = "", .faults = "no-cgroups,shared-counts-twice"},
    {.name = "keeps-descriptor", .op = "exec", .request = KeepADescriptor},
    {.name = "inherits-umask", .op = "exec", .request = InheritTheMask},
    {.name = "ignores-a-signal", .op = "exec", .request = IgnoreASignal},
    {.name = "splits-arguments", .op = "exec", .request = SplitArguments},
    {.name = "leaks-variable", .op = "exec", .request = LeakAVariable},
    {.name = "ignores-timeout", .op = "exec", .request = IgnoreTheTimeout},
    {.name = "ignores-cpu-time", .op = "exec", .request = IgnoreCpuTime},
    {.name = "ignores-memory", .op = "exec", .request = IgnoreMemory},
    {.name = "ignores-pids", .op = "exec", .request = IgnorePids},
    {.name = "ignores-disk-quota", .op = "create", .request = IgnoreTheDiskQuota},
    {.name = "ignores-input", .op = "exec", .request = IgnoreInput},
    {.name = "ignores-terminal", .op = "exec", .request = IgnoreTheTerminal},
    {.name = "ignores-directory", .op = "exec", .request = IgnoreTheDirectory},
    {.name = "raises-ceiling", .op = "exec", .request = RaiseTheCeiling},
    {.name = "gives-up-the-view", .op = "create", .request = GiveUpTheView},
    {.name = "accepts-unknown-option", .op = "create", .request = AcceptUnknownOptions},
    {.name = "ignores-mode", .op = "write", .request = IgnoreTheMode},
    {.name = "archive-ignores-limits", .op = "archive-up", .request = IgnoreLimitsOfTheCall},
    {.name = "archive-loses-modes", .op = "archive-down", .answer = LoseModes},
    {.name = "archive-follows-links", .op = "", .faults = "follow-links"},
    {.name = "archive-over-quota", .op = "", .faults = "api-over-quota"},
    {.name = "reads-another-sandbox", .op = "read", .request = AskTheFirst},
    {.name = "exit-0-for-killed", .op = "wait", .answer = SayKilledIsFine},
    {.name = "killed-is-exited", .op = "wait", .answer = SayKilledHasExited},
    {.name = "wrong-cause", .op = "wait", .answer = SayTimeoutIsASignal},
    {.name = "limit-is-a-signal", .op = "wait", .answer = SayLimitIsASignal},
    {.name = "limit-drops-output", .op = "wait", .answer = DropOutputAtLimit},
    {.name = "wrong-times", .op = "wait", .answer = SayItStartedIn1970},
    {.name = "truncates-silently", .op = "wait", .answer = SayNothingIsCut},
    {.name = "loses-stderr", .op = "wait", .answer = LoseStderr},
    {.name = "mixes-streams", .op = "wait", .answer = MixStreams},
    {.name = "loses-last-byte", .op = "wait", .answer = LoseTheLastByte},
    {.name = "no-duration", .op = "wait", .answer = SayItTookNoTime},
    {.name = "zero-measurements", .op = "wait", .answer = SayNoMemoryWasUsed},
    {.name = "concedes-silently", .op = "wait", .answer = ConcedeSilently, .faults = "no-cgroups"},
    {.name = "repeats-stream", .op = "stream", .answer = RepeatTheStream},
    {.name = "skips-in-stream", .op = "stream", .answer = SkipInTheStream},
    {.name = "lists-backwards", .op = "list", .answer = ListBackwards},
    {.name = "promises-too-much", .op = "capabilities", .answer = PromiseLimits},
    {.name = "leaves-process", .op = "destroy", .answer = LeaveAProcess},
    {.name = "leaves-file", .op = "destroy", .answer = LeaveAFile},
    {.name = "ignores-cancel", .op = "cancel", .swallows = true},
    {.name = "ignores-destroy", .op = "destroy", .swallows = true},
    {.name = "ignores-removal", .op = "remove", .swallows = true},
    {.name = "ignores-chmod", .op = "chmod", .swallows = true},
    {.name = "ignores-end-of-input", .op = "stdin", .swallows = true},
});

const Mutant* chosen = nullptr;  // Set before there are threads.

}  // namespace

void PrepareDistortion() {
  const char* wanted = std::getenv("PALMSHED_MUTANT");
  for (const Mutant& mutant : kMutants) {
    if (wanted != nullptr && mutant.name == wanted) chosen = &mutant;
  }
  if (chosen == nullptr) {
    std::cerr << "PALMSHED_MUTANT names no defect; known:\n";
    for (const Mutant& mutant : kMutants) std::cerr << mutant.name << '\n';
    std::exit(2);
  }
  // NOLINTNEXTLINE(misc-include-cleaner): the check does not know that <cstdlib> has setenv.
  ::setenv("PALMSHED_FAULT", chosen->faults, 1);
}

bool Distorting() { return true; }

void DistortRequest(std::string_view op, object& request) {
  if (chosen->op == op && chosen->request != nullptr) chosen->request(request);
}

bool Swallows(std::string_view op) { return chosen->swallows && chosen->op == op; }

void DistortAnswer(std::string_view op, object& answer) {
  if (op == "create") RememberTheFirst(answer);
  if (chosen->op == op && chosen->answer != nullptr) chosen->answer(answer);
}

}  // namespace palmshed::conformance
