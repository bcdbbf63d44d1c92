#include "run/output.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/waiting.h"
#include "palmshed/error.h"
#include "palmshed/result.h"
#include "palmshed/units.h"

namespace palmshed::run {
namespace {

// Most programs print little: start small, then grow to what keeps up with a full pipe.
constexpr std::size_t kFirstChunk = 16U << 10;
constexpr std::size_t kLargestChunk = 256U << 10;

std::size_t NextCapacity(std::size_t last) {
  return last == 0 ? kFirstChunk : std::min(last * 4, kLargestChunk);
}

}  // namespace

std::span<std::byte> Output::Reserve() {
  const std::lock_guard lock(mu_);
  if (chunks_.empty() || chunks_.back().size == chunks_.back().capacity) {
    const std::size_t capacity = NextCapacity(chunks_.empty() ? 0 : chunks_.back().capacity);
    chunks_.push_back(
        {.bytes = std::make_unique_for_overwrite<std::byte[]>(capacity), .capacity = capacity});
  }
  Chunk& chunk = chunks_.back();
  return {chunk.bytes.get() + chunk.size, chunk.capacity - chunk.size};
}

void Output::Commit(std::size_t size) {
  const std::lock_guard lock(mu_);
  chunks_.back().size += size;
  total_ += size;
  kept_ += size;
  DropLocked();
  changed_.notify_all();
}

void Output::Hold(std::uint64_t cursor) {
  const std::lock_guard lock(mu_);
  held_ = cursor;
  DropLocked();
}

void Output::DropLocked() {
  while (chunks_.size() > 1 && kept_ - chunks_.front().size >= retention_ &&
         total_ - kept_ + chunks_.front().size <= held_) {
    kept_ -= chunks_.front().size;
    chunks_.pop_front();
  }
}

void Output::Finish() {
  const std::lock_guard lock(mu_);
  finished_ = true;
  changed_.notify_all();
}

std::uint64_t Output::total() const {
  const std::lock_guard lock(mu_);
  return total_;
}

template <class Use>
void Output::ForEachLocked(std::uint64_t from, Use use) const {
  std::uint64_t position = total_ - kept_;
  for (const Chunk& chunk : chunks_) {
    const std::uint64_t end = position + chunk.size;
    if (end > from) {
      const std::size_t skip = from > position ? static_cast<std::size_t>(from - position) : 0;
      if (!use(std::span<const std::byte>(chunk.bytes.get() + skip, chunk.size - skip))) return;
    }
    position = end;
  }
}

Captured Output::Snapshot() const {
  const std::lock_guard lock(mu_);
  Captured captured{.total = total_, .truncated = total_ > retention_};
  const std::uint64_t size = std::min(total_, retention_);
  captured.bytes.reserve(size);
  ForEachLocked(total_ - size, [&](std::span<const std::byte> piece) {
    captured.bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  });
  return captured;
}

Result<std::size_t> Output::Read(std::uint64_t cursor, std::span<std::byte> into,
                                 std::optional<Millis> wait, const std::stop_token& stop) const {
  const std::stop_callback wake(stop, [this] {
    const std::lock_guard lock(mu_);
    changed_.notify_all();
  });
  std::unique_lock lock(mu_);
  const auto ready = [&] { return total_ > cursor || finished_ || stop.stop_requested(); };
  if (!wait) {
    changed_.wait(lock, ready);
  } else if (!changed_.wait_for(lock, Bounded(*wait), ready)) {
    return std::unexpected(Error{.code = ErrorCode::kOverloaded,
                                 .message = "no output within the time given",
                                 .op = "read"});
  }
  if (total_ <= cursor && !finished_) {
    return std::unexpected(Error{.code = ErrorCode::kConflict,
                                 .message = "the wait was stopped by the caller",
                                 .op = "read"});
  }
  if (cursor < total_ - kept_) {
    return std::unexpected(
        InvalidOption("cursor", "is older than what is kept; the oldest byte kept is at " +
                                    std::to_string(total_ - kept_)));
  }
  std::size_t copied = 0;
  ForEachLocked(cursor, [&](std::span<const std::byte> piece) {
    const std::size_t size = std::min(piece.size(), into.size() - copied);
    std::memcpy(into.data() + copied, piece.data(), size);
    copied += size;
    return copied < into.size();
  });
  return copied;
}

}  // namespace palmshed::run
