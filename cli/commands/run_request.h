// From the flags of `run` to the request that the engine gets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/values/environment.h"
#include "cli/values/paths.h"
#include "palmshed/error.h"
#include "palmshed/options.h"

namespace palmshed::cli {

/// The flags as they were given.
struct RunFlags {
  std::vector<std::string> env{};
  std::vector<std::string> copy{};
  std::vector<std::string> volume{};
  std::vector<std::string> degraded{};
  std::optional<std::string> workdir{};
  std::optional<std::string> network{};
  std::optional<std::string> timeout{};
  std::optional<std::string> cpu_time{};
  std::optional<std::string> memory{};
  std::optional<std::string> cpus{};
  std::optional<std::string> pids_limit{};
  std::optional<std::string> disk{};
  std::optional<std::string> storage{};
  std::optional<std::string> max_output{};
  std::optional<std::string> osfs{};
  std::optional<std::string> name{};
  std::optional<std::string> json{};
  bool interactive = false;
  bool tty = false;
  bool rm = false;
  bool quiet = false;
  bool timings = false;
};

/// All that a run needs to know.
struct RunRequest {
  SandboxOptions sandbox{};
  ExecOptions exec{};
  std::vector<CopySpec> copies{};
  std::vector<std::string> program{};
  std::string json_path{};  ///< Empty: no result document.
  bool feed_stdin = false;
  bool raw_terminal = false;  ///< Our terminal is to stand for the program's.
  bool quiet = false;
  bool timings = false;
};

/// What the flags are read against: the state of our own process.
struct Surroundings {
  LookUpVariable look_up{};
  std::string directory{};  ///< The current directory; empty when it has been deleted.
  bool input_is_terminal = false;
  std::optional<TerminalSize> terminal{};  ///< Of our own terminal, if there is one.
};

/// INVALID_OPTIONS names the flag at fault.
Result<RunRequest> MakeRunRequest(const RunFlags& flags, std::vector<std::string> program,
                                  const Surroundings& surroundings);

}  // namespace palmshed::cli
