// The public classes: thin handles on the states of this room.
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "palmshed/capabilities.h"
#include "palmshed/engine.h"
#include "palmshed/error.h"
#include "palmshed/execution.h"
#include "palmshed/files.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/sandbox.h"
#include "palmshed/units.h"
#include "run/engine.h"
#include "run/execution.h"
#include "run/sandbox.h"

namespace palmshed {
inline namespace v1 {

// ---- Execution

Execution::Execution(std::shared_ptr<run::ExecutionState> state) : state_(std::move(state)) {}

std::string_view Execution::id() const { return state_->id(); }
std::string Execution::uri() const { return "sandbox://execution/" + state_->id(); }
Status Execution::status() const { return state_->status(); }
int Execution::exit_code() const { return state_->Metadata().exit_code; }
Millis Execution::duration() const { return state_->duration(); }
bool Execution::timed_out() const { return state_->status() == Status::kTimedOut; }
ExecMetadata Execution::metadata() const { return state_->Metadata(); }
Captured Execution::out() const { return state_->output(Stream::kStdout).Snapshot(); }
Captured Execution::err() const { return state_->output(Stream::kStderr).Snapshot(); }
std::string Execution::logs() const { return out().Text() + err().Text(); }

Result<ExecResult> Execution::Wait(std::stop_token stop) const {
  if (state_->OnOwnThread()) {
    return std::unexpected(
        Error{.code = ErrorCode::kConflict,
              .message = "Wait() was called in a callback of the engine, which it would block",
              .op = "wait"});
  }
  const std::stop_callback cancel(stop, [this] { state_->Cancel(); });
  (void)state_->WaitSettled(std::nullopt);
  return *state_->result();
}

std::optional<ExecResult> Execution::WaitFor(Millis limit) const {
  if (!state_->OnOwnThread()) (void)state_->WaitSettled(limit);
  return state_->result();
}

std::optional<ExecResult> Execution::result() const { return state_->result(); }
int Execution::ready_fd() const { return state_->ready_fd(); }

Result<std::size_t> Execution::Read(Stream stream, std::uint64_t cursor, std::span<std::byte> into,
                                    std::optional<Millis> wait) const {
  return state_->output(stream).Read(cursor, into, wait);
}

Result<std::uint64_t> Execution::WaitForOutput(Stream stream, std::string_view text, Millis limit,
                                               std::uint64_t cursor, std::stop_token stop) const {
  return state_->WaitForOutput(stream, text, limit, cursor, stop);
}
Result<void> Execution::WaitForPort(std::uint16_t port, Millis limit, std::stop_token stop) const {
  return state_->WaitForPort(port, limit, stop);
}

Result<void> Execution::Write(std::span<const std::byte> bytes) { return state_->Write(bytes); }
Result<void> Execution::CloseStdin() { return state_->CloseStdin(); }
Result<void> Execution::Signal(int signal) {
  if (signal < 1 || signal > 64) {
    return std::unexpected(InvalidOption("signal", "must be a signal number from 1 to 64"));
  }
  return state_->Signal(signal);
}
Result<void> Execution::Resize(TerminalSize size) {
  if (size.rows == 0 || size.columns == 0) {
    return std::unexpected(InvalidOption("size", "must have at least one row and one column"));
  }
  return state_->Resize(size);
}
Result<void> Execution::Cancel() {
  state_->Cancel();
  return {};
}

// ---- Sandbox

Sandbox::Sandbox(std::shared_ptr<run::SandboxState> state) : state_(std::move(state)) {}
Sandbox::Sandbox(Sandbox&&) noexcept = default;
Sandbox& Sandbox::operator=(Sandbox&& other) noexcept {
  if (this != &other) {
    if (state_) state_->Abandon();
    state_ = std::move(other.state_);
  }
  return *this;
}
Sandbox::~Sandbox() {
  if (state_) state_->Abandon();
}

std::string_view Sandbox::id() const { return state_->id(); }
std::string_view Sandbox::backend_name() const { return state_->backend_name(); }
Result<Capabilities> Sandbox::capabilities() const { return state_->GetCapabilities(); }

Result<Execution> Sandbox::Start(std::vector<std::string> argv, ExecOptions options) {
  PALMSHED_TRY(auto state, state_->Start({.args = std::move(argv), .options = std::move(options)}));
  return Execution(std::move(state));
}
Result<Execution> Sandbox::StartShell(std::string command, ExecOptions options) {
  PALMSHED_TRY(auto state,
               state_->Start({.command = std::move(command), .options = std::move(options)}));
  return Execution(std::move(state));
}
Result<ExecResult> Sandbox::Run(std::vector<std::string> argv, ExecOptions options,
                                std::stop_token stop) {
  PALMSHED_TRY(const auto execution, Start(std::move(argv), std::move(options)));
  return execution.Wait(std::move(stop));
}
Result<ExecResult> Sandbox::RunShell(std::string command, ExecOptions options,
                                     std::stop_token stop) {
  PALMSHED_TRY(const auto execution, StartShell(std::move(command), std::move(options)));
  return execution.Wait(std::move(stop));
}

Result<std::string> Sandbox::ReadFile(std::string_view path) const {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.ReadFile(path);
}
Result<void> Sandbox::WriteFile(std::string_view path, std::span<const std::byte> content,
                                std::uint32_t mode) {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.WriteFile(path, content, mode);
}
Result<void> Sandbox::WriteFile(std::string_view path, std::string_view content,
                                std::uint32_t mode) {
  return WriteFile(path, std::as_bytes(std::span(content)), mode);
}
Result<void> Sandbox::UploadFile(std::string_view host_path, std::string_view path) {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.UploadFile(host_path, path);
}
Result<void> Sandbox::DownloadFile(std::string_view path, std::string_view host_path) const {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.DownloadFile(path, host_path);
}
Result<std::vector<DirEntry>> Sandbox::List(std::string_view path) const {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.List(path);
}
Result<FileStat> Sandbox::Stat(std::string_view path) const {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.Stat(path);
}
Result<void> Sandbox::MakeDirectory(std::string_view path, std::uint32_t mode) {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.MakeDirectory(path, mode);
}
Result<void> Sandbox::Remove(std::string_view path, bool recursive) {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.Remove(path, recursive);
}
Result<void> Sandbox::Move(std::string_view from, std::string_view to) {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.Move(from, to);
}
Result<void> Sandbox::Chmod(std::string_view path, std::uint32_t mode) {
  PALMSHED_TRY(auto files, state_->OpenWorkspace());
  return files.Chmod(path, mode);
}
Result<void> Sandbox::WaitForPort(std::uint16_t port, Millis limit, std::stop_token stop) const {
  return state_->WaitForPort(port, limit, stop);
}
SandboxTimings Sandbox::timings() const { return state_->timings(); }
Result<void> Sandbox::Destroy() { return state_->Destroy(); }

// ---- Engine

Engine::Engine(std::shared_ptr<run::EngineState> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept {
  if (this != &other) {
    if (state_) state_->Shutdown();
    state_ = std::move(other.state_);
  }
  return *this;
}
Engine::~Engine() {
  if (state_) state_->Shutdown();
}

Result<Engine> Engine::Create(EngineOptions options) {
  PALMSHED_TRY(auto state, run::EngineState::Create(std::move(options)));
  return Engine(std::move(state));
}
Result<Sandbox> Engine::CreateSandbox(SandboxOptions options) {
  PALMSHED_TRY(auto state, state_->CreateSandbox(options));
  return Sandbox(std::move(state));
}
Result<Capabilities> Engine::GetCapabilities(std::string_view backend, bool live) {
  return state_->GetCapabilities(backend, live);
}

}  // namespace v1
}  // namespace palmshed
