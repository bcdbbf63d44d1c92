#include "model/validate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/names.h"
#include "model/quantities.h"
#include "model/utf8.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/units.h"

namespace palmshed::model {
namespace {

constexpr std::size_t kMaxPathBytes = 4095;   // PATH_MAX, without the NUL.
constexpr std::size_t kMaxNameBytes = 255;    // NAME_MAX; also of sandbox and label names.
constexpr std::size_t kMaxLabelBytes = 4096;  // Of a label's value.
constexpr std::size_t kMaxLabels = 256;
constexpr std::size_t kMaxMounts = 64;
constexpr std::size_t kMaxNetworkAllow = 1024;

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string Element(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

Result<void> Refuse(std::string_view field, std::string_view problem) {
  return std::unexpected(InvalidOption(field, problem));
}

Result<void> CheckText(std::string_view field, std::string_view text, std::size_t most) {
  if (text.contains('\0')) return Refuse(field, "must not contain a NUL byte");
  if (text.size() <= most) return {};
  return Refuse(field, "must be at most " + std::to_string(most) + " bytes long");
}

Result<void> CheckWhole(std::string_view field, std::uint64_t value, std::string_view unit) {
  if (value > kMaxInteger) return Refuse(field, Explain(Misfit::kTooLarge, unit));
  return {};
}

Result<void> CheckTime(std::string_view field, const std::optional<Millis>& time) {
  if (!time) return {};
  if (time->count() < 0) return Refuse(field, Explain(Misfit::kNegative, "milliseconds"));
  return CheckWhole(field, static_cast<std::uint64_t>(time->count()), "milliseconds");
}

Result<void> CheckSize(std::string_view field, const std::optional<Bytes>& size) {
  return CheckWhole(field, Count(size.value_or(Bytes{})), "bytes");
}

Result<void> CheckCores(std::string_view field, const std::optional<double>& cores) {
  if (!cores || *cores == 0) return {};
  if (std::isnan(*cores)) return Refuse(field, "must be a number of cores, not NaN");
  if (*cores < 0) return Refuse(field, "must not be negative");
  if (*cores < kMinCores) return Refuse(field, "must be at least 0.1 cores, or 0 for no limit");
  if (*cores > static_cast<double>(kMaxInteger)) {
    return Refuse(field, Explain(Misfit::kTooLarge, "cores"));
  }
  return {};
}

// `..` may still stay inside, and only the workspace can tell.
Result<void> CheckWorkDir(std::string_view work_dir) {
  if (work_dir.starts_with('/')) return Refuse("workDir", "must be relative to the workspace");
  return CheckText("workDir", work_dir, kMaxPathBytes);
}

Result<void> CheckEnv(const Env& env) {
  for (const auto& [name, value] : env) {
    if (name.empty()) return Refuse("env", "must not hold a variable without a name");
    const std::string field = "env." + Shown(name);
    if (name.contains('=')) return Refuse(field, "must not have '=' in its name");
    if (name.contains('\0')) return Refuse(field, "must not have a NUL byte in its name");
    if (value.contains('\0')) return Refuse(field, "must not contain a NUL byte");
  }
  return {};
}

Result<void> CheckLabels(const Labels& labels) {
  if (labels.size() > kMaxLabels) {
    return Refuse("labels", "must be at most " + std::to_string(kMaxLabels));
  }
  for (const auto& [name, value] : labels) {
    const std::string field = "labels." + Shown(name);
    if (name.empty()) return Refuse("labels", "must not hold a label without a name");
    PALMSHED_TRY_VOID(CheckText(field, name, kMaxNameBytes));
    PALMSHED_TRY_VOID(CheckText(field, value, kMaxLabelBytes));
  }
  return {};
}

// True when `path` is `top` or something below it.
bool IsWithin(std::string_view path, std::string_view top) {
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

// "/a/b": no empty, "." or ".." component, so that comparing text is comparing paths.
bool IsPlainAbsolute(std::string_view path) {
  if (!path.starts_with('/') || path.size() == 1) return false;
  const std::string bounded = std::string(path) + "/";
  const auto has = [&](std::string_view part) { return bounded.contains(part); };
  return !has("//") && !has("/./") && !has("/../");
}

Result<void> CheckMount(const std::string& field, const Mount& mount) {
  PALMSHED_TRY_VOID(CheckText(field + ".source", mount.source, kMaxPathBytes));
  PALMSHED_TRY_VOID(CheckText(field + ".target", mount.target, kMaxPathBytes));
  if (!mount.source.starts_with('/')) return Refuse(field + ".source", "must be absolute");
  if (!mount.target.starts_with('/')) return Refuse(field + ".target", "must be absolute");
  if (!IsPlainAbsolute(mount.target)) {
    return Refuse(field + ".target", "must name a directory plainly, without //, . and ..");
  }
  for (const std::string_view reserved : {"/workspace", "/proc", "/dev", "/sys"}) {
    if (!IsWithin(mount.target, reserved)) continue;
    return Refuse(field + ".target", std::string("must not be within ").append(reserved));
  }
  return {};
}

Result<void> CheckMounts(const std::vector<Mount>& mounts) {
  if (mounts.size() > kMaxMounts) {
    return Refuse("mounts", "must be at most " + std::to_string(kMaxMounts));
  }
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    PALMSHED_TRY_VOID(CheckMount(Element("mounts", i), mounts[i]));
  }
  return {};
}

Result<void> CheckNetwork(const SandboxOptions& options) {
  if (!IsKnown(options.network)) return Refuse("network", "must be " + Choices<Network>());
  if (options.network_allow.size() > kMaxNetworkAllow) {
    return Refuse("networkAllow", "must be at most " + std::to_string(kMaxNetworkAllow));
  }
  for (std::size_t i = 0; i < options.network_allow.size(); ++i) {
    const std::string field = Element("networkAllow", i);
    if (options.network_allow[i].empty()) return Refuse(field, "must not be empty");
    PALMSHED_TRY_VOID(CheckText(field, options.network_allow[i], kMaxNameBytes));
  }
  return CheckText("proxyUrl", options.proxy_url, kMaxPathBytes);
}

Result<void> CheckDegraded(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::find(kDegradable, names[i]) != std::end(kDegradable)) continue;
    std::string problem = "must be one of";
    for (const std::string_view known : kDegradable) problem.append(" ").append(known);
    return Refuse(Element("degraded", i), problem);
  }
  return {};
}

Result<void> CheckSandboxLimits(const SandboxOptions& options) {
  PALMSHED_TRY_VOID(CheckCores("cpu", options.cpu));
  PALMSHED_TRY_VOID(CheckCores("cpuQuota", options.cpu_quota));
  PALMSHED_TRY_VOID(CheckTime("cpuTimeLimit", options.cpu_time_limit));
  PALMSHED_TRY_VOID(CheckSize("memory", options.memory));
  PALMSHED_TRY_VOID(CheckSize("diskQuota", options.disk_quota));
  PALMSHED_TRY_VOID(CheckTime("timeout", options.timeout));
  PALMSHED_TRY_VOID(CheckWhole("pids", options.pids.value_or(0), "processes"));
  PALMSHED_TRY_VOID(CheckSize("maxOutputBytes", options.max_output));
  PALMSHED_TRY_VOID(CheckTime("idleTimeout", options.idle_timeout));
  return CheckTime("maxLifetime", options.max_lifetime);
}

Result<void> CheckExecLimits(const ExecOptions& options) {
  PALMSHED_TRY_VOID(CheckTime("timeout", options.timeout));
  PALMSHED_TRY_VOID(CheckTime("cpuTimeLimit", options.cpu_time_limit));
  PALMSHED_TRY_VOID(CheckCores("cpuQuota", options.cpu_quota));
  PALMSHED_TRY_VOID(CheckSize("memory", options.memory));
  PALMSHED_TRY_VOID(CheckWhole("pids", options.pids.value_or(0), "processes"));
  return CheckSize("maxOutputBytes", options.max_output);
}

Result<void> CheckProgram(const ExecRequest& request) {
  if (request.command.empty() && request.args.empty()) {
    return Refuse("args", "must not be empty, unless there is a command");
  }
  if (!request.command.empty() && !request.args.empty()) {
    return Refuse("command", "must not be given together with args");
  }
  if (request.command.contains('\0')) return Refuse("command", "must not contain a NUL byte");
  for (std::size_t i = 0; i < request.args.size(); ++i) {
    if (!request.args[i].contains('\0')) continue;
    return Refuse(Element("args", i), "must not contain a NUL byte");
  }
  if (request.command.empty() && request.args[0].empty()) {
    return Refuse("args[0]", "must name a program");
  }
  return {};
}

}  // namespace

Result<void> Validate(const SandboxOptions& options) {
  if (options.backend.empty()) return Refuse("backend", "must not be empty");
  PALMSHED_TRY_VOID(CheckText("backend", options.backend, kMaxNameBytes));
  PALMSHED_TRY_VOID(CheckSandboxLimits(options));
  PALMSHED_TRY_VOID(CheckNetwork(options));
  PALMSHED_TRY_VOID(CheckWorkDir(options.work_dir));
  PALMSHED_TRY_VOID(CheckEnv(options.env));
  PALMSHED_TRY_VOID(CheckText("image", options.image, kMaxPathBytes));
  PALMSHED_TRY_VOID(CheckMounts(options.mounts));
  PALMSHED_TRY_VOID(CheckDegraded(options.degraded));
  PALMSHED_TRY_VOID(CheckText("name", options.name, kMaxNameBytes));
  PALMSHED_TRY_VOID(CheckLabels(options.labels));
  if (!IsKnown(options.storage)) return Refuse("storage", "must be " + Choices<Storage>());
  return {};
}

Result<void> Validate(const ExecRequest& request) {
  const ExecOptions& options = request.options;
  PALMSHED_TRY_VOID(CheckProgram(request));
  PALMSHED_TRY_VOID(CheckExecLimits(options));
  PALMSHED_TRY_VOID(CheckWorkDir(options.work_dir));
  PALMSHED_TRY_VOID(CheckEnv(options.env));
  if (options.tty && (options.tty->rows == 0 || options.tty->columns == 0)) {
    return Refuse("tty", "must have at least one row and one column");
  }
  if (!IsKnown(options.descendants))
    return Refuse("descendants", "must be " + Choices<Descendants>());
  return {};
}

}  // namespace palmshed::model
