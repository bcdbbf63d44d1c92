#include "backends/native/plain_bearer.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "backends/native/armed_children.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

std::optional<PlainBearer::Bearer> PlainBearer::Take() {
  const std::lock_guard lock(mu_);
  if (state_ == State::kUnwanted) state_ = State::kAbsent;
  if (state_ != State::kWaits) return std::nullopt;
  state_ = State::kTaken;
  return bearer_;
}

void PlainBearer::Return(Bearer bearer, bool waits) {
  const std::lock_guard lock(mu_);
  if (state_ != State::kTaken) return;  // Init is dead.
  state_ = waits ? State::kWaits : State::kAbsent;
  bearer_ = waits ? std::move(bearer) : Bearer();
}

bool PlainBearer::wanted() const {
  const std::lock_guard lock(mu_);
  return state_ == State::kAbsent;
}

void PlainBearer::Prepare() {
  const std::lock_guard lock(mu_);
  if (state_ != State::kAbsent) return;
  const auto asked = context_.ask();
  if (!asked) return;  // Executions do without.
  state_ = State::kAsked;
  bearer_ = {.sequence = *asked};
}

void PlainBearer::Rest() {
  const std::lock_guard lock(mu_);
  if (state_ != State::kWaits) return;
  context_.dismiss(bearer_.sequence);
  state_ = State::kAbsent;
  bearer_ = {};
}

bool PlainBearer::OnArmed(std::uint32_t sequence, Result<ArmedChildren::Armed>& child) {
  const std::lock_guard lock(mu_);
  if (state_ != State::kAsked || bearer_.sequence != sequence) return false;
  state_ = child ? State::kWaits : State::kAbsent;
  bearer_ = child ? Bearer{.sequence = sequence, .socket = std::move(child->socket)} : Bearer();
  return true;
}

void PlainBearer::OnGone(std::uint32_t sequence) {
  const std::lock_guard lock(mu_);
  // What has been taken is returned.
  if (state_ == State::kTaken || bearer_.sequence != sequence) return;
  if (state_ == State::kAsked || state_ == State::kWaits) state_ = State::kAbsent;
  bearer_ = {};
}

void PlainBearer::OnDead() {
  const std::lock_guard lock(mu_);
  state_ = State::kDead;
  bearer_ = {};
}

}  // namespace palmshed::backends::native
