// The engine: owns the loop thread, the launchers and the sandboxes.
#pragma once

#include <memory>
#include <string_view>

#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/export.h"
#include "palmshed/options.h"
#include "palmshed/sandbox.h"

namespace palmshed {

namespace run {
class EngineState;
}

inline namespace v1 {

/// An explicit object with nothing process-wide behind it: no signal handler, no rlimit, no umask,
/// no locale is changed, and its threads block all signals. Methods may be called from any thread.
/// on_event runs on the engine's own thread, on_output on one of its execution's. A host program
/// may fork(); the child must not touch the engine or anything made from it. When the process dies,
/// by whatever cause, every workload dies with it at once.
class PALMSHED_EXPORT Engine {
 public:
  /// Makes an engine. Errors: OVERLOADED (threads or descriptors), FS_ERROR (workspace_root).
  static Result<Engine> Create(EngineOptions options = {});
  /// Made by Create.
  explicit Engine(std::shared_ptr<run::EngineState> state);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Destroys what is left and waits until it is gone.
  ~Engine();

  /// Makes a sandbox. Errors: INVALID_OPTIONS (field named), INVALID_BACKEND, UNSUPPORTED (with a
  /// remedy), OVERLOADED, FS_ERROR, BACKEND_LOST.
  Result<Sandbox> CreateSandbox(SandboxOptions options = {});
  /// What a backend can do here. Runs the self-tests, or answers from their cache unless `live`:
  /// what this engine saw, or another of this user in the same surroundings within the last five
  /// minutes. Creating and executing never rely on either.
  Result<Capabilities> GetCapabilities(std::string_view backend = "native", bool live = false);

 private:
  std::shared_ptr<run::EngineState> state_;
};

}  // namespace v1
}  // namespace palmshed
