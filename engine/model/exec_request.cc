#include <cstdint>
#include <expected>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "model/base64.h"
#include "model/json_reader.h"
#include "model/json_value.h"
#include "model/quantities.h"
#include "model/validate.h"
#include "palmshed/error.h"
#include "palmshed/json.h"
#include "palmshed/options.h"

namespace palmshed {
namespace {

using model::JsonValue;
using model::ObjectReader;
using Kind = JsonValue::Kind;

// {"text": "..."} or {"base64": "..."}
Result<std::string> ReadContent(const JsonValue& value, const std::string& path) {
  ObjectReader in(value, path);
  const JsonValue* const text = in.Take("text", Kind::kString);
  const JsonValue* const base64 = in.Take("base64", Kind::kString);
  PALMSHED_TRY_VOID(in.Finish());
  if ((text == nullptr) == (base64 == nullptr)) {
    return std::unexpected(InvalidOption(path, "must hold either text or base64"));
  }
  if (text != nullptr) return text->text;
  std::optional<std::string> decoded = model::DecodeBase64(base64->text);
  if (!decoded) return std::unexpected(InvalidOption(path + ".base64", "must be padded base64"));
  return *std::move(decoded);
}

Result<void> ReadStdin(ObjectReader& in, ExecOptions& options) {
  const JsonValue* const value = in.Take("stdin");
  if (value == nullptr) return {};
  if (value->kind == Kind::kObject) {
    PALMSHED_TRY(options.stdin_bytes, ReadContent(*value, in.PathOf("stdin")));
    return {};
  }
  options.stdin_pipe = value->kind == Kind::kString && value->text == "pipe";
  const bool null_device = value->kind == Kind::kString && value->text == "null";
  if (!options.stdin_pipe && !null_device) {
    in.Fail("stdin", R"(must be "null", "pipe", {"text": ...} or {"base64": ...})");
  }
  return {};
}

void ReadCells(ObjectReader& in, std::string_view name, std::uint16_t& into) {
  const JsonValue* const value = in.Take(name, Kind::kNumber);
  if (value == nullptr) return;
  const auto cells = model::WholeNumber(value->text);
  if (!cells || *cells == 0 || *cells > std::numeric_limits<std::uint16_t>::max()) {
    return in.Fail(name, "must be a whole number from 1 to 65535");
  }
  into = static_cast<std::uint16_t>(*cells);
}

Result<void> ReadTty(ObjectReader& in, std::optional<TerminalSize>& into) {
  const JsonValue* const value = in.Take("tty");
  if (value == nullptr) return {};
  TerminalSize size;
  ObjectReader tty(*value, in.PathOf("tty"));
  ReadCells(tty, "rows", size.rows);
  ReadCells(tty, "cols", size.columns);
  PALMSHED_TRY_VOID(tty.Finish());
  into = size;
  return {};
}

void ReadProgram(ObjectReader& in, ExecRequest& request) {
  in.Text("command", request.command);
  in.TextList("args", request.args);
  if (in.Take("command") != nullptr && in.Take("args") != nullptr) {
    in.Fail("command", "must not be given together with args");
  }
}

void ReadLimits(ObjectReader& in, ExecOptions& options) {
  in.Time("timeout", options.timeout);
  in.Time("cpuTimeLimit", options.cpu_time_limit);
  in.Cores("cpuQuota", options.cpu_quota);
  in.Size("memory", options.memory);
  in.Count("pids", options.pids);
  in.Size("maxOutputBytes", options.max_output);
}

}  // namespace

inline namespace v1 {

Result<ExecRequest> ParseExecRequest(std::string_view json) {
  PALMSHED_TRY(const JsonValue document, model::ParseJson(json));
  ExecRequest request;
  ObjectReader in(document, "");
  ReadProgram(in, request);
  ReadLimits(in, request.options);
  in.Text("workDir", request.options.work_dir);
  in.TextMap("env", request.options.env);
  in.Keep(ReadStdin(in, request.options));
  in.Keep(ReadTty(in, request.options.tty));
  in.Choice("descendants", request.options.descendants);
  in.Flag("timings", request.options.timings);
  PALMSHED_TRY_VOID(in.Finish());
  PALMSHED_TRY_VOID(model::Validate(request));
  return request;
}

}  // namespace v1
}  // namespace palmshed
