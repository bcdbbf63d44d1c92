#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "model/metadata.h"
#include "model/names.h"
#include "model/print.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/result.h"

namespace palmshed {
namespace {

namespace json = boost::json;

json::object Print(const Termination& termination) {
  json::object out;
  model::PutText(out, "cause", ToString(termination.cause));
  model::PutIfKnown(out, "limit", termination.limit);
  model::PutIfKnown(out, "observed", termination.observed);
  model::PutIfKnown(out, "signal", termination.signal);
  model::PutTextIfAny(out, "stage", termination.stage);
  model::PutIfKnown(out, "errno", termination.sys_errno);
  json::object evidence;
  for (const auto& [name, value] : termination.evidence) evidence[name] = value;
  if (!evidence.empty()) out["evidence"] = std::move(evidence);
  return out;
}

json::array Print(const std::vector<StepTime>& steps) {
  json::array out;
  for (const StepTime& step : steps) {
    json::object one;
    model::PutText(one, "step", step.step);
    one["micros"] = step.duration.count();
    out.emplace_back(std::move(one));
  }
  return out;
}

json::object Print(const ExecMetadata& metadata) {
  json::object out;
  model::PutText(out, "id", metadata.id);
  model::PutText(out, "backend", metadata.backend);
  model::PutText(out, "specVersion", metadata.spec_version);
  model::PutText(out, "startedAt", model::Iso8601(metadata.started_at));
  if (metadata.finished_at) {
    model::PutText(out, "finishedAt", model::Iso8601(*metadata.finished_at));
  }
  model::PutIfKnown(out, "durationMs", std::optional(metadata.duration));
  out["exitCode"] = metadata.exit_code;
  out["timedOut"] = metadata.timed_out;
  model::PutIfKnown(out, "cpuTimeMs", metadata.cpu_time);
  model::PutIfKnown(out, "peakMemoryBytes", metadata.peak_memory);
  model::PutIfKnown(out, "signal", metadata.signal);
  if (!metadata.timings.empty()) out["timings"] = Print(metadata.timings);
  return out;
}

// The resource whose limit ended the run; empty for every other cause.
std::string_view ResourceOf(const ExecResult& result) {
  const auto code = model::FromName<ErrorCode>(result.error_code());
  return code ? model::ResourceOf(*code) : std::string_view();
}

std::string MessageOf(const ExecResult& result) {
  const Termination& termination = result.termination;
  const std::string_view resource = ResourceOf(result);
  if (!resource.empty()) return "The execution exceeded its " + std::string(resource) + " limit.";
  const std::string step = termination.stage + ": " +
                           std::generic_category().message(termination.sys_errno.value_or(0)) + ".";
  if (termination.cause == Cause::kStartupFailed)
    return "The program could not be started: " + step;
  if (termination.cause == Cause::kInternal) return "The engine ended the execution: " + step;
  return "The sandbox was lost.";
}

json::array Print(const std::vector<Mount>& mounts) {
  json::array out;
  for (const Mount& mount : mounts) {
    json::object one;
    model::PutText(one, "source", mount.source);
    model::PutText(one, "target", mount.target);
    one["readOnly"] = mount.read_only;
    out.emplace_back(std::move(one));
  }
  return out;
}

// What an SDK raises for this result; absent when the error code is empty.
void PutError(json::object& into, const ExecResult& result) {
  if (result.error_code().empty()) return;
  json::object error;
  model::PutText(error, "code", result.error_code());
  model::PutText(error, "message", MessageOf(result));
  const std::string_view resource = ResourceOf(result);
  if (!resource.empty()) {
    model::PutText(error, "resource", resource);
    model::PutIfKnown(error, "limit", result.termination.limit);
    model::PutIfKnown(error, "observed", result.termination.observed);
    error["recoverable"] = true;
  } else {
    model::PutIfKnown(error, "errno", result.termination.sys_errno);
  }
  into["error"] = std::move(error);
}

}  // namespace

inline namespace v1 {

std::string ToJson(const ExecResult& result) {
  json::object out;
  model::PutText(out, "id", result.id);
  model::PutText(out, "status", ToString(result.status));
  out["exitCode"] = result.exit_code;
  out["timedOut"] = result.timed_out();
  model::PutOctets(out, "stdout", result.out.bytes);
  out["stdoutTotalBytes"] = result.out.total;
  model::PutOctets(out, "stderr", result.err.bytes);
  out["stderrTotalBytes"] = result.err.total;
  out["truncated"] = result.out.truncated || result.err.truncated;
  model::PutIfKnown(out, "durationMs", std::optional(result.duration));
  model::PutIfKnown(out, "cpuTimeMs", result.cpu_time);
  model::PutIfKnown(out, "peakMemoryBytes", result.peak_memory);
  out["termination"] = Print(result.termination);
  PutError(out, result);
  model::PutTexts(out, "weaker", result.weaker);
  if (!result.mounts.empty()) out["mounts"] = Print(result.mounts);
  out["metadata"] = Print(model::MetadataOf(result));
  return json::serialize(out);
}

std::string ToJson(const ExecMetadata& metadata) { return json::serialize(Print(metadata)); }

}  // namespace v1
}  // namespace palmshed
