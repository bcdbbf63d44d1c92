#include "run/engine.h"

#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backends/backend.h"
#include "base/ids.h"
#include "base/laps.h"
#include "base/loop.h"
#include "base/result.h"
#include "base/worker.h"
#include "model/validate.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/events.h"
#include "palmshed/options.h"
#include "plan/plan.h"
#include "run/sandbox.h"
#include "run/selftest.h"
#include "run/selftest_cache.h"

namespace palmshed::run {

Result<std::shared_ptr<EngineState>> EngineState::Create(EngineOptions options) {
  PALMSHED_TRY(auto loop, Loop::Create());
  return std::shared_ptr<EngineState>(new EngineState(std::move(options), std::move(loop)));
}

EngineState::EngineState(EngineOptions options, std::unique_ptr<Loop> loop)
    : options_(std::move(options)), loop_(std::move(loop)), worker_(std::make_unique<Worker>()) {}

EngineState::~EngineState() { Shutdown(); }

Result<backends::Backend*> EngineState::FindBackend(std::string_view name) {
  const std::lock_guard lock(mu_);
  if (closed_) {
    return std::unexpected(Error{.code = ErrorCode::kBackendLost, .message = "the engine is gone"});
  }
  if (const auto found = backends_.find(name); found != backends_.end()) {
    return found->second.get();
  }
  const backends::BackendContext context{.loop = loop_.get(),
                                         .worker = worker_.get(),
                                         .options = &options_,
                                         .emit = [this](Event event) { Emit(std::move(event)); }};
  PALMSHED_TRY(auto made, backends::MakeBackend(name, context));
  return (backends_[std::string(name)] = std::move(made)).get();
}

SandboxState::Context EngineState::SandboxContext(const std::string& backend) {
  // Sandboxes may outlive the engine in their owners' hands.
  const std::weak_ptr<EngineState> weak = weak_from_this();
  return {.loop = loop_.get(),
          .engine = weak,
          .emit =
              [weak](Event event) {
                if (const auto engine = weak.lock()) engine->Emit(std::move(event));
              },
          .abandon =
              [weak](std::shared_ptr<SandboxState> abandoned) {
                if (const auto engine = weak.lock()) engine->Abandon(std::move(abandoned));
              },
          .capabilities = [this, backend] { return GetCapabilities(backend, false); },
          .gone =
              [weak](const std::string& id) {
                if (const auto engine = weak.lock()) engine->Forget(id);
              }};
}

Result<std::shared_ptr<SandboxState>> EngineState::CreateSandbox(const SandboxOptions& options) {
  Laps laps;
  PALMSHED_TRY_VOID(model::Validate(options));
  PALMSHED_TRY(backends::Backend * backend, FindBackend(options.backend));
  const std::string id = MakeId("sbx_");
  auto sandbox = std::make_shared<SandboxState>(id, SandboxContext(options.backend));
  const std::weak_ptr<SandboxState> weak_sandbox = sandbox;
  laps.End("backend");
  PALMSHED_TRY(
      backends::PlannedSandbox made,
      backend->Create(
          id, options, [&](const plan::Offer& offer) { return plan::PlanSandbox(options, offer); },
          [weak_sandbox] {
            if (const auto lost = weak_sandbox.lock()) lost->OnLost();
          }));
  laps.Append(made.laps);
  made.laps = std::move(laps);
  sandbox->Attach(std::move(made));
  {
    const std::lock_guard lock(mu_);
    if (!closed_) {
      sandboxes_[sandbox->id()] = sandbox;
      return sandbox;
    }
  }
  (void)sandbox->Destroy();  // The engine was shut down meanwhile.
  return std::unexpected(Error{.code = ErrorCode::kBackendLost, .message = "the engine is gone"});
}

Result<Capabilities> EngineState::GetCapabilities(std::string_view name, bool live) {
  PALMSHED_TRY(backends::Backend * backend, FindBackend(name));
  if (!live) {
    const std::lock_guard lock(mu_);
    if (const auto found = tested_.find(name); found != tested_.end()) return found->second;
  }
  const auto cache = SelfTestCache::For(*backend);
  auto tested = cache && !live ? cache->Load() : std::nullopt;
  if (!tested) {
    PALMSHED_TRY(tested, SelfTest(*backend, [this](const SandboxOptions& options) {
                   return CreateSandbox(options);
                 }));
    // What changed meanwhile may have been one thing for one half of the test.
    if (cache && cache == SelfTestCache::For(*backend)) cache->Store(*tested);
  }
  const std::lock_guard lock(mu_);
  tested_[std::string(name)] = *tested;
  return *std::move(tested);
}

void EngineState::Abandon(std::shared_ptr<SandboxState> sandbox) {
  const std::lock_guard lock(mu_);
  if (closed_) return;  // Shutdown destroys it.
  worker_->Post([sandbox = std::move(sandbox)] { (void)sandbox->Destroy(); });
}

void EngineState::Forget(const std::string& id) {
  const std::lock_guard lock(mu_);
  sandboxes_.erase(id);
}

void EngineState::Emit(Event event) {
  if (!options_.on_event) return;
  loop_->Post([this, event = std::move(event)] { options_.on_event(event); });
}

void EngineState::Shutdown() {
  std::map<std::string, std::shared_ptr<SandboxState>> sandboxes;
  {
    const std::lock_guard lock(mu_);
    if (closed_) return;
    closed_ = true;
    sandboxes = std::move(sandboxes_);
  }
  for (const auto& [id, sandbox] : sandboxes) sandbox->Kill();
  for (const auto& [id, sandbox] : sandboxes) (void)sandbox->Destroy();
  worker_->Finish();
  loop_->Finish();  // Events posted so far reach the observer.
  backends_.clear();
}

}  // namespace palmshed::run
