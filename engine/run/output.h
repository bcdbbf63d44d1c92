// One output stream of an execution: kept as a tail of bounded size, readable by cursor.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>

#include "palmshed/error.h"
#include "palmshed/result.h"
#include "palmshed/units.h"

namespace palmshed::run {

/// Filled by the engine's thread alone; read from any thread. Memory stays within the retention
/// limit plus one chunk: chunks are dropped whole as soon as the rest is enough.
class Output {
 public:
  /// Zero keeps everything.
  explicit Output(Bytes retention)
      : retention_(Count(retention) == 0 ? std::numeric_limits<std::uint64_t>::max()
                                         : Count(retention)) {}

  /// Space to read into; stays valid until Commit.
  std::span<std::byte> Reserve();
  /// Publishes the first `size` bytes of the reserved space.
  void Commit(std::size_t size);
  /// No more output will come.
  void Finish();
  static constexpr auto kNobody = std::numeric_limits<std::uint64_t>::max();
  /// Bytes from position `cursor` on are kept whatever the retention limit says: somebody has not
  /// read them yet. kNobody: no more.
  void Hold(std::uint64_t cursor);

  std::uint64_t total() const;
  Captured Snapshot() const;
  /// As Execution::Read. A stop request ends the wait with CONFLICT.
  Result<std::size_t> Read(std::uint64_t cursor, std::span<std::byte> into,
                           std::optional<Millis> wait, const std::stop_token& stop = {}) const;

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t capacity = 0;
    std::size_t size = 0;
  };

  void DropLocked();
  /// Calls `use(span)` for the kept bytes from position `from` on, until it returns false.
  template <class Use>
  void ForEachLocked(std::uint64_t from, Use use) const;

  const std::uint64_t retention_;
  mutable std::mutex mu_;
  mutable std::condition_variable changed_;
  std::deque<Chunk> chunks_;
  std::uint64_t total_ = 0;       ///< Bytes ever committed.
  std::uint64_t kept_ = 0;        ///< Bytes in `chunks_`.
  std::uint64_t held_ = kNobody;  ///< See Hold.
  bool finished_ = false;
};

}  // namespace palmshed::run
