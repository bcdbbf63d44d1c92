#include "run/input.h"

#include <cerrno>
#include <cstddef>
#include <expected>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "base/loop.h"
#include "base/sys.h"
#include "base/unique_fd.h"
#include "palmshed/error.h"
#include "run/terminal.h"

namespace palmshed::run {
namespace {

std::unexpected<Error> NoPipe() {
  return std::unexpected(Error{.code = ErrorCode::kConflict,
                               .message = "standard input is not an open pipe",
                               .op = "write"});
}

}  // namespace

void Input::Open(UniqueFd pipe, std::string first, bool close_after) {
  const std::lock_guard lock(mu_);
  pipe_ = std::move(pipe);
  queued_ = first.size();
  if (!first.empty()) queue_.push_back(std::move(first));
  accepting_ = !close_after;
}

void Input::OpenTerminal(std::string first, bool close_after) {
  Open({}, std::move(first), close_after);
  typed_end_ = true;
}

void Input::Connect(UniqueFd terminal) {
  const std::lock_guard lock(mu_);
  pipe_ = std::move(terminal);
}

bool Input::open() const {
  const std::lock_guard lock(mu_);
  return pipe_.valid();
}

Result<void> Input::Queue(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mu_);
  if (!accepting_) return NoPipe();
  if (queued_ + bytes.size() > kMaxQueued) {
    return std::unexpected(Error{.code = ErrorCode::kOverloaded,
                                 .message = "16 MiB of standard input are waiting already",
                                 .op = "write"});
  }
  queue_.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  queued_ += bytes.size();
  return {};
}

Result<void> Input::Close() {
  const std::lock_guard lock(mu_);
  accepting_ = false;
  return {};
}

bool Input::WriteSome() {
  while (!queue_.empty()) {
    const auto rest = std::as_bytes(std::span(queue_.front())).subspan(offset_);
    const auto written = sys::Write(pipe_.get(), rest);
    if (!written) {
      if (written.error().sys_errno == EAGAIN) return false;
      // EPIPE: nobody reads any more; what is queued has nowhere to go.
      accepting_ = false;
      queue_.clear();
      break;
    }
    if (*written > 0) last_ = std::to_integer<char>(rest[*written - 1]);
    offset_ += *written;
    queued_ -= *written;
    if (*written == rest.size()) {
      queue_.pop_front();
      offset_ = 0;
    }
  }
  queued_ = 0;
  return true;
}

bool Input::WriteAll() {
  if (!WriteSome()) return false;
  if (accepting_ || !typed_end_) return true;
  typed_end_ = false;
  const bool after_line = last_ == '\n' || last_ == '\r';
  queue_.push_back(EndOfInput(pipe_.get(), after_line));
  queued_ = queue_.back().size();
  return WriteSome();
}

void Input::Flush(Loop& loop) {
  const std::lock_guard lock(mu_);
  if (!pipe_.valid()) return;
  if (WriteAll()) {
    watch_.reset();
    if (!accepting_) pipe_.reset();
    return;
  }
  if (watch_) return;
  auto watch = loop.WatchWritable(pipe_.get(), [this, &loop] { Flush(loop); });
  if (watch) {
    watch_ = *std::move(watch);
  } else {
    accepting_ = false;  // Nothing can tell when there is room: the program sees an early end.
    pipe_.reset();
  }
}

void Input::Shut() {
  const std::lock_guard lock(mu_);
  watch_.reset();
  pipe_.reset();
  queue_.clear();
  accepting_ = false;
}

}  // namespace palmshed::run
