// Theory of operation: this thread makes the sandbox, starts the program and then waits in one
// poll loop (Attend) for its end, for signals, for our input and for a broken output. The engine
// has threads of its own; one of them calls OutputWriter::Write and may wait there for a slow
// reader, which holds up the sandboxed program and nothing else. Whatever goes wrong, the sandbox
// is destroyed before the engine goes, and both before we do.
#include "cli/commands/one_shot.h"

#include <fmt/core.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/run_request.h"
#include "cli/output/event_log.h"
#include "cli/output/exit_code.h"
#include "cli/output/note.h"
#include "cli/output/outcome.h"
#include "cli/output/result_file.h"
#include "cli/output/timings.h"
#include "cli/process/attend.h"
#include "cli/process/input_feed.h"
#include "cli/process/output_writer.h"
#include "cli/process/raw_mode.h"
#include "cli/process/stop_signals.h"
#include "cli/process/window.h"
#include "cli/values/paths.h"
#include "palmshed/engine.h"
#include "palmshed/error.h"
#include "palmshed/execution.h"
#include "palmshed/json.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/sandbox.h"

namespace palmshed::cli {
namespace {

/// One run, from its request to its exit code.
class OneShot {
 public:
  OneShot(RunRequest request, StopSignals signals, OutputWriter output,
          std::optional<ResultFile> file, std::optional<WindowChanges> window)
      : request_(std::move(request)),
        signals_(signals),
        output_(std::move(output)),
        file_(std::move(file)),
        window_(std::move(window)) {}

  ExitCode Run() {
    Result<ExecResult> result = RunInEngine();
    timings_.Lap("cleanup");
    const ExitCode code = result ? Report(*result) : ReportFailure(result.error());
    if (request_.timings) {
      for (const std::string& line : timings_.Lines()) Note(line);
    }
    return code;
  }

 private:
  Result<ExecResult> RunInEngine() {
    auto engine = Engine::Create({.on_event = EventObserver()});
    timings_.Lap("engine");
    if (!engine) return std::unexpected(std::move(engine.error()));
    auto sandbox = engine->CreateSandbox(std::move(request_.sandbox));
    timings_.Lap("create", sandbox ? sandbox->timings().create : std::vector<StepTime>());
    if (!sandbox) return std::unexpected(std::move(sandbox.error()));
    Result<ExecResult> result = RunInSandbox(*sandbox);
    const auto destroyed = sandbox->Destroy();
    // The program's own end is known and stays the answer.
    if (!destroyed) Note("cannot remove the sandbox: " + Describe(destroyed.error()));
    timings_.Lap("destroy", sandbox->timings().destroy);
    return result;
  }

  Result<ExecResult> RunInSandbox(Sandbox& sandbox) {
    for (const CopySpec& copy : request_.copies) {
      if (signals_.received() != 0) return Interrupted();
      const auto copied = sandbox.UploadFile(copy.source, copy.target);
      if (!copied) return std::unexpected(copied.error());
    }
    timings_.Lap("copy");
    if (signals_.received() != 0) return Interrupted();
    ExecOptions options = std::move(request_.exec);
    options.on_output = [this](Stream stream, std::span<const std::byte> bytes) {
      output_.Write(stream, bytes);
    };
    std::optional<RawMode> raw;
    if (request_.raw_terminal) raw.emplace();
    auto execution = sandbox.Start(request_.program, std::move(options));
    if (!execution) return std::unexpected(std::move(execution.error()));
    return Await(*execution);
  }

  Result<ExecResult> Await(Execution& execution) {
    std::optional<InputFeed> input;
    if (request_.feed_stdin) input.emplace(execution);
    const auto attended = Attend(execution, signals_, output_, input ? &*input : nullptr,
                                 window_ ? &*window_ : nullptr);
    Result<ExecResult> result = execution.Wait();
    timings_.Lap("exec", result ? result->timings : std::vector<StepTime>());
    if (!attended) return std::unexpected(attended.error());
    return result;
  }

  /// A signal came before the program was started.
  static std::unexpected<Error> Interrupted() {
    return std::unexpected(Error{.code = ErrorCode::kExecFailed,
                                 .message = "cancelled by a signal before the program was started",
                                 .op = "start"});
  }

  ExitCode Report(const ExecResult& result) {
    const ExitCode code = ForResult(result, signals_.received());
    const Outcome outcome = DescribeOutcome(result, request_.program.front(), signals_.received());
    const auto& broken = output_.failure();
    if (!outcome.text.empty() && !broken && (outcome.is_failure || !request_.quiet)) {
      Note(outcome.text);
    }
    if (!request_.quiet) {
      if (const std::string refusals = DescribeRefusals(result); !refusals.empty()) Note(refusals);
      for (const std::string& control : result.weaker) {
        Note(fmt::format("{} was not enforced, as --degraded allows", control));
      }
    }
    if (!WriteDocument(ToJson(result))) return ExitCode::kFailed;
    return broken ? ReportBroken(*broken) : code;
  }

  /// The program's output did not all arrive, so its own end cannot be passed on as it is.
  ExitCode ReportBroken(const OutputFailure& failure) const {
    if (failure.sys_errno == EPIPE) return ForSignal(SIGPIPE);
    Note(fmt::format("cannot write standard {}: {}; the program was cancelled",
                     failure.stream == Stream::kStdout ? "output" : "error",
                     NameErrno(failure.sys_errno)));
    return ExitCode::kFailed;
  }

  ExitCode ReportFailure(const Error& error) {
    Note(Describe(error));
    (void)WriteDocument(ToJson(error));  // Ignoring a failure, because it has been reported.
    const int signal = signals_.received();
    return signal != 0 ? ForSignal(signal) : ExitCode::kFailed;
  }

  bool WriteDocument(const std::string& document) const {
    if (!file_) return true;
    const auto written = file_->Write(document);
    if (!written) Note(Describe(written.error()));
    return written.has_value();
  }

  RunRequest request_;
  StopSignals signals_;
  OutputWriter output_;
  std::optional<ResultFile> file_;
  std::optional<WindowChanges> window_;
  Timings timings_{};
};

Result<OneShot> Prepare(RunRequest request) {
  auto signals = StopSignals::Install();
  if (!signals) return std::unexpected(std::move(signals.error()));
  auto output = OutputWriter::Create();
  if (!output) return std::unexpected(std::move(output.error()));
  std::optional<ResultFile> file;
  if (!request.json_path.empty()) {
    auto opened = ResultFile::Open(request.json_path);
    if (!opened) return std::unexpected(std::move(opened.error()));
    file = *std::move(opened);
  }
  std::optional<WindowChanges> window;
  if (request.exec.tty) {
    auto watched = WindowChanges::Watch();
    if (!watched) return std::unexpected(std::move(watched.error()));
    window = *std::move(watched);
  }
  return OneShot(std::move(request), *signals, *std::move(output), std::move(file),
                 std::move(window));
}

}  // namespace

ExitCode RunOnce(RunRequest request) {
  auto run = Prepare(std::move(request));
  if (run) return run->Run();
  Note(Describe(run.error()));
  return ExitCode::kFailed;
}

}  // namespace palmshed::cli
