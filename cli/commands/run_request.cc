#include "cli/commands/run_request.h"

#include <algorithm>
#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/values/duration.h"
#include "cli/values/environment.h"
#include "cli/values/flag_error.h"
#include "cli/values/numbers.h"
#include "cli/values/paths.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"

namespace palmshed::cli {
namespace {

/// Reads a flag that was given with `parse` into `field`.
template <class T, class Parse>
Result<void> Take(const std::optional<std::string>& text, std::string_view flag, Parse parse,
                  std::optional<T>& field) {
  if (!text) return {};
  auto value = parse(*text, flag);
  if (!value) return std::unexpected(std::move(value.error()));
  field = *value;
  return {};
}

Result<void> TakeLimits(const RunFlags& flags, SandboxOptions& sandbox) {
  // All are read even after an error; the first one is reported.
  const Result<void> taken[]{
      Take(flags.timeout, "--timeout", ParseDuration, sandbox.timeout),
      Take(flags.cpu_time, "--cpu-time", ParseDuration, sandbox.cpu_time_limit),
      Take(flags.memory, "--memory", ParseBytes, sandbox.memory),
      Take(flags.cpus, "--cpus", ParseCores, sandbox.cpu_quota),
      Take(flags.pids_limit, "--pids-limit", ParseCount, sandbox.pids),
      Take(flags.disk, "--disk", ParseBytes, sandbox.disk_quota),
      Take(flags.max_output, "--max-output", ParseBytes, sandbox.max_output)};
  for (const auto& one : taken) {
    if (!one) return one;
  }
  return {};
}

/// Splits "memory,cpuQuota".
std::vector<std::string> SplitNames(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    for (std::size_t start = 0; start <= list.size();) {
      const std::size_t comma = std::min(list.find(',', start), list.size());
      if (comma > start) names.push_back(list.substr(start, comma - start));
      start = comma + 1;
    }
  }
  return names;
}

Result<void> TakeNetwork(const std::optional<std::string>& text, Network& network) {
  if (!text || *text == "disabled") return {};
  if (*text != "allow" && *text != "proxy") {
    return std::unexpected(FlagError("--network", *text, "must be disabled, allow or proxy"));
  }
  network = *text == "allow" ? Network::kAllow : Network::kProxy;
  return {};
}

Result<void> TakeFileView(const std::optional<std::string>& text, std::optional<bool>& isolation) {
  if (!text) return {};
  if (*text != "on" && *text != "off") {
    return std::unexpected(FlagError("--osfs", *text, "must be on or off"));
  }
  isolation = *text == "on";
  return {};
}

Result<void> TakeStorage(const std::optional<std::string>& text, Storage& storage) {
  if (!text || *text == "disk") return {};
  if (*text != "memory" && *text != "loop") {
    return std::unexpected(FlagError("--storage", *text, "must be disk, memory or loop"));
  }
  storage = *text == "memory" ? Storage::kMemory : Storage::kLoop;
  return {};
}

Result<void> TakeFiles(const RunFlags& flags, const std::string& directory, RunRequest& request) {
  for (const std::string& text : flags.copy) {
    auto copy = ParseCopy(text);
    if (!copy) return std::unexpected(std::move(copy.error()));
    request.copies.push_back(*std::move(copy));
  }
  for (const std::string& text : flags.volume) {
    auto mount = ParseVolume(text, directory);
    if (!mount) return std::unexpected(std::move(mount.error()));
    request.sandbox.mounts.push_back(*std::move(mount));
  }
  return {};
}

/// Our own terminal's size and kind, since the program's output ends there.
Result<void> TakeTerminal(const RunFlags& flags, const Surroundings& surroundings,
                          RunRequest& request) {
  if (!flags.tty) return {};
  if (flags.interactive && !surroundings.input_is_terminal) {
    return std::unexpected(Error{
        .code = ErrorCode::kInvalidOptions,
        .message = "the input device is not a TTY: standard input must be a terminal for -i -t",
        .field = "--tty",
        .remedy = "leave -t out to feed a file or a pipe to the program"});
  }
  request.raw_terminal = flags.interactive;
  request.exec.tty = surroundings.terminal.value_or(TerminalSize{});
  const auto kind = surroundings.terminal ? surroundings.look_up("TERM") : std::nullopt;
  const bool is_set = std::ranges::any_of(
      request.exec.env, [](const auto& variable) { return variable.first == "TERM"; });
  if (kind && !kind->empty() && !is_set) request.exec.env.emplace_back("TERM", *kind);
  return {};
}

Result<void> TakeJson(const std::optional<std::string>& path, std::string& json_path) {
  if (!path) return {};
  if (path->empty() || *path == "-") {
    return std::unexpected(
        FlagError("--json", *path,
                  "needs a file, since standard output belongs to the program (/dev/fd/3 with "
                  "3>FILE works)"));
  }
  json_path = *path;
  return {};
}

}  // namespace

Result<RunRequest> MakeRunRequest(const RunFlags& flags, std::vector<std::string> program,
                                  const Surroundings& surroundings) {
  if (program.empty()) {
    return std::unexpected(Error{.code = ErrorCode::kInvalidOptions,
                                 .message = "no program given",
                                 .field = "PROGRAM",
                                 .remedy = "name one, as in: palmshed run -- echo hello"});
  }
  RunRequest request{.program = std::move(program),
                     .feed_stdin = flags.interactive,
                     .quiet = flags.quiet,
                     .timings = flags.timings};
  auto env = ParseEnv(flags.env, surroundings.look_up);
  if (!env) return std::unexpected(std::move(env.error()));
  request.exec.env = *std::move(env);
  request.exec.work_dir = flags.workdir.value_or("");
  request.exec.stdin_pipe = flags.interactive;
  request.exec.timings = flags.timings;
  request.sandbox.degraded = SplitNames(flags.degraded);
  request.sandbox.name = flags.name.value_or("");

  Result<void> taken[]{TakeLimits(flags, request.sandbox),
                       TakeNetwork(flags.network, request.sandbox.network),
                       TakeStorage(flags.storage, request.sandbox.storage),
                       TakeFileView(flags.osfs, request.sandbox.os_filesystem_isolation),
                       TakeFiles(flags, surroundings.directory, request),
                       TakeTerminal(flags, surroundings, request),
                       TakeJson(flags.json, request.json_path)};
  for (auto& one : taken) {
    if (!one) return std::unexpected(std::move(one.error()));
  }
  return request;
}

}  // namespace palmshed::cli
