// The engine's state: the loop, the backends, and the sandboxes that are alive.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "base/loop.h"
#include "base/worker.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/options.h"
#include "run/sandbox.h"

namespace palmshed::run {

/// Any thread.
class EngineState : public std::enable_shared_from_this<EngineState> {
 public:
  static Result<std::shared_ptr<EngineState>> Create(EngineOptions options);
  ~EngineState();
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  Result<std::shared_ptr<SandboxState>> CreateSandbox(const SandboxOptions& options);
  Result<Capabilities> GetCapabilities(std::string_view backend, bool live);
  /// Destroys in the background what its owner has let go.
  void Abandon(std::shared_ptr<SandboxState> sandbox);
  /// Destroys everything and waits; every later call answers BACKEND_LOST.
  void Shutdown();

 private:
  EngineState(EngineOptions options, std::unique_ptr<Loop> loop);
  SandboxState::Context SandboxContext(const std::string& backend);
  Result<backends::Backend*> FindBackend(std::string_view name);
  void Emit(Event event);
  void Forget(const std::string& id);

  const EngineOptions options_;
  const std::unique_ptr<Loop> loop_;
  std::mutex mu_;
  bool closed_ = false;
  std::map<std::string, std::unique_ptr<backends::Backend>, std::less<>> backends_;
  std::map<std::string, std::shared_ptr<SandboxState>> sandboxes_;
  std::map<std::string, Capabilities, std::less<>> tested_;  ///< For capabilities() only.
  std::unique_ptr<Worker> worker_;
};

}  // namespace palmshed::run
