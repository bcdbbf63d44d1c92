#include "backends/native/launchers.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/native/host.h"
#include "backends/native/launcher.h"
#include "backends/native/rungs.h"
#include "base/loop.h"
#include "base/worker.h"

namespace palmshed::backends::native {

Launchers::Launchers(Loop* loop, Worker* worker, std::chrono::nanoseconds idle_period)
    : loop_(loop), worker_(worker), idle_period_(idle_period) {}

Launchers::~Launchers() {
  loop_->Run([this] { timer_.reset(); });
}

Rung Launchers::For(const Host& host, Kind kind) {
  const std::lock_guard lock(mu_);
  begun_.insert(kind);
  Entry& entry = entries_[kind];
  // A refusal is not remembered: somebody may have followed the remedy meanwhile.
  if (!entry.rung.launcher || entry.rung.launcher->gone()) {
    entry.rung = StartRung(*loop_, host, kind);
  }
  entry.used = Clock::now();
  if (entry.rung.launcher && !armed_) {
    armed_ = true;
    loop_->Post([this] { Arm(); });
  }
  return entry.rung;
}

bool Launchers::TakeFirst(Kind kind) {
  const std::lock_guard lock(mu_);
  return begun_.insert(kind).second;
}

std::size_t Launchers::running() const {
  const std::lock_guard lock(mu_);
  return static_cast<std::size_t>(std::ranges::count_if(
      entries_, [](const auto& entry) { return entry.second.rung.launcher != nullptr; }));
}

void Launchers::Arm() {
  timer_ = loop_->After(idle_period_, [this] { RetireIdle(); });
}

/// Whoever holds the lock may be waiting for this thread to start a launcher.
void Launchers::RetireIdle() {
  std::vector<std::shared_ptr<Launcher>> idle;
  bool again = true;
  if (std::unique_lock lock(mu_, std::try_to_lock); lock) {
    idle = TakeIdle();
    again = armed_ = !entries_.empty();
  }
  if (again) Arm();
  if (!idle.empty()) worker_->Post([idle = std::move(idle)] {});  // Their end is waited for.
}

/// Each sandbox holds its launcher; copies of a Rung are made under the lock.
std::vector<std::shared_ptr<Launcher>> Launchers::TakeIdle() {
  std::vector<std::shared_ptr<Launcher>> idle;
  const Clock::time_point now = Clock::now();
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    if (entry.rung.launcher.use_count() > 1) entry.used = now;
    if (now - entry.used < idle_period_) {
      ++at;
      continue;
    }
    if (entry.rung.launcher) idle.push_back(std::move(entry.rung.launcher));
    at = entries_.erase(at);
  }
  return idle;
}

}  // namespace palmshed::backends::native
