#include "run/input.h"

#include <cerrno>
#include <cstddef>
#include <expected>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "base/loop.h"
#include "base/result.h"
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

Result<bool> Input::WriteSome() {
  while (!queue_.empty()) {
    const auto rest = std::as_bytes(std::span(queue_.front())).subspan(offset_);
    const auto written = sys::Write(pipe_.get(), rest);
    const int failed = written ? 0 : written.error().sys_errno;
    if (failed == EAGAIN) return false;
    if (failed != 0 && failed != EPIPE) return std::unexpected(written.error());
    if (failed == EPIPE) {  // Nobody reads any more; what is queued has nowhere to go.
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

Result<bool> Input::WriteAll() {
  PALMSHED_TRY(const bool written, WriteSome());
  if (!written) return false;
  if (accepting_ || !typed_end_) return true;
  typed_end_ = false;
  const bool after_line = last_ == '\n' || last_ == '\r';
  PALMSHED_TRY(std::string end, EndOfInput(pipe_.get(), after_line));
  queued_ = end.size();
  queue_.push_back(std::move(end));
  return WriteSome();
}

Result<void> Input::WriteOrWait(Loop& loop, std::function<void()> again) {
  PALMSHED_TRY(const bool written, WriteAll());
  if (written) {
    watch_.reset();
    if (!accepting_) pipe_.reset();
  } else if (!watch_) {
    PALMSHED_TRY(watch_, loop.WatchWritable(pipe_.get(), std::move(again)));
  }
  return {};
}

Result<void> Input::Flush(Loop& loop, std::function<void()> again) {
  const std::lock_guard lock(mu_);
  if (!pipe_.valid() || failed_) return {};
  auto done = WriteOrWait(loop, std::move(again));
  if (!done) {
    watch_.reset();
    accepting_ = false;
    failed_ = true;
  }
  return done;
}

void Input::Shut() {
  const std::lock_guard lock(mu_);
  watch_.reset();
  pipe_.reset();
  queue_.clear();
  accepting_ = false;
}

}  // namespace palmshed::run
