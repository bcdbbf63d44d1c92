#include "cli/commands/run.h"

#include <unistd.h>

#include <CLI/App.hpp>
#include <climits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/one_shot.h"
#include "cli/commands/run_request.h"
#include "cli/commands/verb.h"
#include "cli/output/exit_code.h"
#include "cli/output/note.h"
#include "cli/process/window.h"
#include "cli/values/environment.h"

namespace palmshed::cli {
namespace {

constexpr char kFiles[] = "Files";
constexpr char kProgram[] = "Program";
constexpr char kIsolation[] = "Isolation";
constexpr char kLimits[] = "Limits";
constexpr char kOutput[] = "Output";

void AddValue(CLI::App& app, const char* names, std::optional<std::string>& value, const char* type,
              const char* group, const char* description) {
  // The last one wins, as in Docker.
  app.add_option(names, value, description)->type_name(type)->group(group)->take_last();
}

void AddList(CLI::App& app, const char* names, std::vector<std::string>& values, const char* type,
             const char* group, const char* description) {
  app.add_option(names, values, description)
      ->type_name(type)
      ->group(group)
      ->allow_extra_args(false);
}

void AddFlag(CLI::App& app, const char* names, bool& value, const char* group,
             const char* description) {
  app.add_flag(names, value, description)->group(group)->take_last();
}

void DeclareProgramOptions(CLI::App& app, RunFlags& flags) {
  AddList(app, "-e,--env", flags.env, "NAME[=VALUE]", kProgram,
          "Set an environment variable; without a value, take it from palmshed's own environment. "
          "May be repeated.");
  AddValue(app, "-w,--workdir", flags.workdir, "PATH", kProgram,
           "Start in this directory of the workspace; it is made if it does not exist.");
  AddFlag(app, "-i,--interactive", flags.interactive, kProgram,
          "Feed standard input to the program. Without it the program reads end of file.");
  AddFlag(app, "-t,--tty", flags.tty, kProgram,
          "Run the program on a terminal of its own, of the size of ours. With -i, ours must be a "
          "terminal and stands for it: keys go to the program as they are, ^C too.");
}

void DeclareFileOptions(CLI::App& app, RunFlags& flags) {
  AddList(app, "--copy", flags.copy, "SRC[:DST]", kFiles,
          "Copy a file or directory into the workspace before the start. '--copy .' copies what "
          "the current directory holds to the workspace itself. May be repeated.");
  AddList(app, "-v,--volume", flags.volume, "SRC:DST[:ro|:rw]", kFiles,
          "Show a directory or file of this machine inside: read-only, the default, or with :rw "
          "writable. A relative SRC is below the current directory; symbolic links are refused. "
          "May be repeated.");
}

void DeclareIsolationOptions(CLI::App& app, RunFlags& flags) {
  AddValue(app, "--network", flags.network, "disabled|allow|proxy", kIsolation,
           "What of the network can be reached: nothing (the default), what this machine reaches, "
           "or one filtering proxy.");
  AddValue(app, "--osfs", flags.osfs, "on|off", kIsolation,
           "The private view of the file system; off is an explicit opt-out.");
  AddList(app, "--degraded", flags.degraded, "NAME,...", kIsolation,
          "Accept that these controls are not enforced where this host cannot: memory, cpuQuota, "
          "pids, cpuTimeLimit, diskQuota, proc, groups, hostLoopback.");
  AddValue(app, "--name", flags.name, "NAME", kIsolation, "A name for the sandbox, for people.");
  AddFlag(app, "--rm", flags.rm, kIsolation,
          "Remove the sandbox afterwards. This is always done; the flag is accepted because other "
          "tools have it.");
}

void DeclareLimitOptions(CLI::App& app, RunFlags& flags) {
  AddValue(app, "--timeout", flags.timeout, "TIME", kLimits,
           "Kill the program after this much wall-clock time: a number with ms, s, m or h. 0 is no "
           "limit, which is the default.");
  AddValue(
      app, "--cpu-time", flags.cpu_time, "TIME", kLimits,
      "CPU time of the program and all that it starts: a number with ms, s, m or h. Sleeping is "
      "free.");
  AddValue(
      app, "-m,--memory", flags.memory, "SIZE", kLimits,
      "Memory of the program and all that it starts, such as 64m. Files in memory count, cached "
      "files of the disk do not.");
  AddValue(app, "--cpus", flags.cpus, "CORES", kLimits,
           "CPU cores, such as 0.5, at least 0.1. The program is slowed down, never killed.");
  AddValue(app, "--pids-limit", flags.pids_limit, "COUNT", kLimits,
           "Processes and threads at a time. Starting one more fails inside; nothing is killed.");
  AddValue(app, "--disk", flags.disk, "SIZE", kLimits, "Disk space of the workspace and /tmp.");
  AddValue(
      app, "--storage", flags.storage, "disk|memory|loop", kLimits,
      "Where the workspace and /tmp are kept: in a directory of the disk, whose use is measured "
      "(the default), in memory, or in a file system image. The last two are of the size that "
      "--disk gives and full when it is used up.");
}

void DeclareOutputOptions(CLI::App& app, RunFlags& flags) {
  AddValue(app, "--json", flags.json, "FILE", kOutput,
           "Write the result document (or, when nothing ran, the error document) to FILE.");
  AddValue(app, "--max-output", flags.max_output, "SIZE", kOutput,
           "How much of each stream's end the result document keeps; 16m by default. What is "
           "shown live is always complete.");
  AddFlag(app, "-q,--quiet", flags.quiet, kOutput,
          "Do not say how the program ended; the exit code does. Failures to run it are still "
          "reported.");
  AddFlag(app, "--timings", flags.timings, kOutput,
          "Say on standard error how long each step took; those of the program are in the result "
          "document too.");
}

Surroundings OwnSurroundings() {
  char directory[PATH_MAX];
  const char* known = ::getcwd(directory, sizeof directory);
  return {.look_up = OwnVariable,
          .directory = known != nullptr ? known : "",
          .input_is_terminal = ::isatty(STDIN_FILENO) == 1,
          .terminal = OwnTerminalSize()};
}

}  // namespace

Action DeclareRun(CLI::App& app) {
  // Shared with the options, which write into it while the arguments are parsed.
  const auto flags = std::make_shared<RunFlags>();
  DeclareProgramOptions(app, *flags);
  DeclareFileOptions(app, *flags);
  DeclareIsolationOptions(app, *flags);
  DeclareLimitOptions(app, *flags);
  DeclareOutputOptions(app, *flags);
  return [flags](std::vector<std::string> program) {
    auto request = MakeRunRequest(*flags, std::move(program), OwnSurroundings());
    if (request) return RunOnce(*std::move(request));
    Note(Describe(request.error()));
    return ExitCode::kFailed;
  };
}

}  // namespace palmshed::cli
