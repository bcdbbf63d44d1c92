#include "drivers/cpp/operations.h"

#include <unistd.h>

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "drivers/cpp/base64.h"
#include "drivers/cpp/request.h"
#include "palmshed/palmshed.h"

namespace palmshed::conformance {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 16;
constexpr std::uint32_t kFileMode = 0644;
constexpr std::uint32_t kDirectoryMode = 0755;

std::unexpected<Error> NotFound(std::string_view field, const std::string& id) {
  return std::unexpected(Error{.code = ErrorCode::kNotFound,
                               .message = "there is no " + std::string(field) + " \"" + id + "\"",
                               .field = std::string(field)});
}

/// {"name": document}
std::string Member(std::string_view name, std::string_view document) {
  return "{\"" + std::string(name) + "\": " + std::string(document) + "}";
}

std::string MemberText(std::string_view name, std::string_view text) {
  return Member(name, boost::json::serialize(boost::json::string(text)));
}

/// The answer to what has nothing to say.
Result<std::string> Done(Result<void> result) {
  if (!result) return std::unexpected(std::move(result).error());
  return "{}";
}

std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The engine's cache of self-tests, in the directory of its state.
std::string CacheIn(std::string_view state) { return std::string(state) + "/capabilities-*"; }

/// Where the engine keeps files outside of what the runner gave it, and what stays there when no
/// sandbox is left.
void PutPlaces(boost::json::object& answer) {
  boost::json::array watch;
  boost::json::array keeps;
  if (::geteuid() == 0) {
    for (const std::string_view top : {"/run/palmshed", "/var/lib/palmshed"}) {
      watch.emplace_back(top);
      keeps.emplace_back(std::string(top) + "/uids");
    }
    keeps.emplace_back(CacheIn("/run/palmshed"));
  }
  for (const char* variable : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME"}) {
    const char* directory = std::getenv(variable);
    if (directory != nullptr) keeps.emplace_back(std::string(directory) + "/palmshed");
  }
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR")) {
    keeps.emplace_back(CacheIn(std::string(runtime) + "/palmshed"));
  }
  answer["watch"] = std::move(watch);
  answer["keeps"] = std::move(keeps);
}

}  // namespace

Result<std::unique_ptr<Operations>> Operations::Create() {
  auto engine = Engine::Create();
  if (!engine) return std::unexpected(std::move(engine).error());
  return std::make_unique<Operations>(*std::move(engine));
}

Operations::Operations(Engine engine) : engine_(std::move(engine)) {}

Result<std::string> Operations::CarryOut(const Request& request) {
  struct Entry {
    std::string_view op;
    Answer (Operations::*carry_out)(const Request&);
  };
  static constexpr std::array kEntries = {
      Entry{"hello", &Operations::Hello},
      Entry{"capabilities", &Operations::GetCapabilities},
      Entry{"create", &Operations::Create},
      Entry{"exec", &Operations::Exec},
      Entry{"wait", &Operations::Wait},
      Entry{"stream", &Operations::Stream},
      Entry{"status", &Operations::Status},
      Entry{"stdin", &Operations::Stdin},
      Entry{"signal", &Operations::Signal},
      Entry{"resize", &Operations::Resize},
      Entry{"cancel", &Operations::Cancel},
      Entry{"write", &Operations::Write},
      Entry{"read", &Operations::Read},
      Entry{"upload", &Operations::Upload},
      Entry{"download", &Operations::Download},
      Entry{"archive-up", &Operations::ArchiveUp},
      Entry{"archive-down", &Operations::ArchiveDown},
      Entry{"list", &Operations::List},
      Entry{"stat", &Operations::Stat},
      Entry{"mkdir", &Operations::MakeDirectory},
      Entry{"remove", &Operations::Remove},
      Entry{"move", &Operations::Move},
      Entry{"chmod", &Operations::Chmod},
      Entry{"destroy", &Operations::Destroy},
  };
  const std::string op = request.op();
  for (const Entry& entry : kEntries) {
    if (entry.op == op) return (this->*entry.carry_out)(request);
  }
  return std::unexpected(Error{.code = ErrorCode::kInvalidOptions,
                               .message = "there is no operation \"" + op + "\"",
                               .field = "op"});
}

void Operations::DestroyAll() {
  std::vector<std::shared_ptr<Sandbox>> all;
  {
    const std::scoped_lock lock(mu_);
    for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
  }
  for (const auto& sandbox : all) (void)sandbox->Destroy();  // Ignoring: the engine's end follows.
}

Result<std::shared_ptr<Sandbox>> Operations::FindSandbox(const Request& request) {
  const std::string id = request.Text("sandbox");
  const std::scoped_lock lock(mu_);
  const auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) return NotFound("sandbox", id);
  return found->second;
}

Result<Execution> Operations::FindExecution(const Request& request) {
  const std::string id = request.Text("execution");
  const std::scoped_lock lock(mu_);
  const auto found = executions_.find(id);
  if (found == executions_.end()) return NotFound("execution", id);
  return found->second;
}

// ---- The engine

Result<std::string> Operations::Hello(const Request&) {
  const auto capabilities = engine_.GetCapabilities();
  if (!capabilities) return std::unexpected(capabilities.error());
  boost::json::object answer{{"name", "palmshed (C++)"},
                             {"version", kVersion},
                             {"specVersion", kSpecVersion},
                             {"lacks", boost::json::array()}};
  PutPlaces(answer);
  std::string text = boost::json::serialize(answer);
  text.back() = ',';
  return text + " \"capabilities\": " + ToJson(*capabilities) + "}";
}

Result<std::string> Operations::GetCapabilities(const Request&) {
  const auto capabilities = engine_.GetCapabilities();
  if (!capabilities) return std::unexpected(capabilities.error());
  return Member("capabilities", ToJson(*capabilities));
}

Result<std::string> Operations::Create(const Request& request) {
  auto options = ParseSandboxOptions(boost::json::serialize(request.Document("options")));
  if (!options) return std::unexpected(std::move(options).error());
  auto made = engine_.CreateSandbox(*std::move(options));
  if (!made) return std::unexpected(std::move(made).error());
  auto sandbox = std::make_shared<Sandbox>(*std::move(made));
  const std::string id(sandbox->id());
  const std::scoped_lock lock(mu_);
  sandboxes_.emplace(id, std::move(sandbox));
  return MemberText("sandbox", id);
}

Result<std::string> Operations::Destroy(const Request& request) {
  const auto sandbox = FindSandbox(request);
  if (!sandbox) return std::unexpected(sandbox.error());
  return Done((*sandbox)->Destroy());
}

// ---- Executions

Result<std::string> Operations::Exec(const Request& request) {
  const auto sandbox = FindSandbox(request);
  if (!sandbox) return std::unexpected(sandbox.error());
  boost::json::object document = request.Document("options");
  for (const std::string_view form : {"args", "command"}) {
    const boost::json::value* value = request.document().if_contains(form);
    if (value != nullptr) document[form] = *value;
  }
  auto parsed = ParseExecRequest(boost::json::serialize(document));
  if (!parsed) return std::unexpected(std::move(parsed).error());
  auto started =
      parsed->args.empty()
          ? (*sandbox)->StartShell(std::move(parsed->command), std::move(parsed->options))
          : (*sandbox)->Start(std::move(parsed->args), std::move(parsed->options));
  if (!started) return std::unexpected(std::move(started).error());
  const std::string id(started->id());
  const std::scoped_lock lock(mu_);
  executions_.emplace(id, *std::move(started));
  return MemberText("execution", id);
}

Result<std::string> Operations::Wait(const Request& request) {
  const auto execution = FindExecution(request);
  if (!execution) return std::unexpected(execution.error());
  const auto result = execution->Wait();
  if (!result) return std::unexpected(result.error());
  return Member("result", ToJson(*result));
}

Result<std::string> Operations::Stream(const Request& request) {
  const auto execution = FindExecution(request);
  if (!execution) return std::unexpected(execution.error());
  const auto wait = request.Number("waitMs");
  if (!wait) return std::unexpected(wait.error());
  const boost::json::value* at = request.document().if_contains("cursor");
  const std::uint64_t cursor =
      at != nullptr && at->is_int64() ? static_cast<std::uint64_t>(at->get_int64()) : 0;
  std::vector<std::byte> piece(kPieceBytes);
  const auto stream =
      request.Text("stream") == "stderr" ? palmshed::Stream::kStderr : palmshed::Stream::kStdout;
  const auto size = execution->Read(stream, cursor, piece, Millis(wait->value_or(0)));
  const bool nothing_yet = !size && size.error().code == ErrorCode::kOverloaded;
  if (!size && !nothing_yet) return std::unexpected(size.error());
  const std::string_view bytes(reinterpret_cast<const char*>(piece.data()), size.value_or(0));
  return boost::json::serialize(boost::json::object{
      {"bytes", ToBase64(bytes)},
      {"next", cursor + bytes.size()},
      {"end", !nothing_yet && bytes.empty()},
  });
}

Result<std::string> Operations::Status(const Request& request) {
  const auto execution = FindExecution(request);
  if (!execution) return std::unexpected(execution.error());
  return Member("metadata", ToJson(execution->metadata()));
}

Result<std::string> Operations::Stdin(const Request& request) {
  auto execution = FindExecution(request);
  if (!execution) return std::unexpected(execution.error());
  const auto bytes = request.Bytes("bytes");
  if (!bytes) return std::unexpected(bytes.error());
  if (auto written = execution->Write(AsBytes(*bytes)); !written) return Done(std::move(written));
  return request.Flag("close") ? Done(execution->CloseStdin()) : "{}";
}

Result<std::string> Operations::Signal(const Request& request) {
  auto execution = FindExecution(request);
  if (!execution) return std::unexpected(execution.error());
  const auto signal = request.Number("signal");
  if (!signal) return std::unexpected(signal.error());
  return Done(execution->Signal(static_cast<int>(signal->value_or(0))));
}

Result<std::string> Operations::Resize(const Request& request) {
  auto execution = FindExecution(request);
  if (!execution) return std::unexpected(execution.error());
  const auto rows = request.Number("rows");
  if (!rows) return std::unexpected(rows.error());
  const auto columns = request.Number("cols");
  if (!columns) return std::unexpected(columns.error());
  return Done(execution->Resize({.rows = static_cast<std::uint16_t>(rows->value_or(0)),
                                 .columns = static_cast<std::uint16_t>(columns->value_or(0))}));
}

Result<std::string> Operations::Cancel(const Request& request) {
  auto execution = FindExecution(request);
  if (!execution) return std::unexpected(execution.error());
  return Done(execution->Cancel());
}

// ---- Files

Result<Operations::Place> Operations::FindPlace(const Request& request) {
  auto sandbox = FindSandbox(request);
  if (!sandbox) return std::unexpected(sandbox.error());
  auto path = request.Path("path");
  if (!path) return std::unexpected(path.error());
  return Place{.sandbox = *std::move(sandbox), .path = *std::move(path)};
}

Result<std::string> Operations::Write(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  const auto bytes = request.Bytes("bytes");
  if (!bytes) return std::unexpected(bytes.error());
  const auto mode = request.Number("mode");
  if (!mode) return std::unexpected(mode.error());
  return Done(place->sandbox->WriteFile(place->path, *bytes, mode->value_or(kFileMode)));
}

Result<std::string> Operations::Read(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  const auto content = place->sandbox->ReadFile(place->path);
  if (!content) return std::unexpected(content.error());
  return MemberText("bytes", ToBase64(*content));
}

Result<std::string> Operations::Upload(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  return Done(place->sandbox->UploadFile(request.Text("hostPath"), place->path));
}

Result<std::string> Operations::Download(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  return Done(place->sandbox->DownloadFile(place->path, request.Text("hostPath")));
}

Result<std::string> Operations::List(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  const auto entries = place->sandbox->List(place->path);
  if (!entries) return std::unexpected(entries.error());
  std::string text;
  for (const DirEntry& entry : *entries) text += (text.empty() ? "" : ", ") + ToJson(entry);
  return Member("entries", "[" + text + "]");
}

Result<std::string> Operations::Stat(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  const auto facts = place->sandbox->Stat(place->path);
  if (!facts) return std::unexpected(facts.error());
  return Member("stat", ToJson(*facts));
}

Result<std::string> Operations::MakeDirectory(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  const auto mode = request.Number("mode");
  if (!mode) return std::unexpected(mode.error());
  return Done(place->sandbox->MakeDirectory(place->path, mode->value_or(kDirectoryMode)));
}

Result<std::string> Operations::Remove(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  return Done(place->sandbox->Remove(place->path, request.Flag("recursive")));
}

Result<std::string> Operations::Move(const Request& request) {
  const auto sandbox = FindSandbox(request);
  if (!sandbox) return std::unexpected(sandbox.error());
  const auto from = request.Path("from");
  if (!from) return std::unexpected(from.error());
  const auto to = request.Path("to");
  if (!to) return std::unexpected(to.error());
  return Done((*sandbox)->Move(*from, *to));
}

Result<std::string> Operations::Chmod(const Request& request) {
  const auto place = FindPlace(request);
  if (!place) return std::unexpected(place.error());
  const auto mode = request.Number("mode");
  if (!mode) return std::unexpected(mode.error());
  return Done(place->sandbox->Chmod(place->path, mode->value_or(0)));
}

}  // namespace palmshed::conformance
