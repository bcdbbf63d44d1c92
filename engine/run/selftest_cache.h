// What a self-test saw, for other processes of the same user in the same surroundings: half a
// second for each that only wants to know the capabilities. Creating and executing never look here,
// and nothing is believed that somebody else could have written.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "backends/backend.h"
#include "palmshed/capabilities.h"

namespace palmshed::run {

inline constexpr std::chrono::minutes kTestedFor{5};
/// What did not work may have been held up by other work of the host.
inline constexpr std::chrono::seconds kFailedFor{10};
inline constexpr std::size_t kMaxTestedBytes = std::size_t{256} << 10;

/// A few files, `capabilities-<n>.json`, in a directory that the backend keeps its state in.
class SelfTestCache {
 public:
  using Clock = std::chrono::system_clock;

  /// `directory` need not exist, and is never made.
  SelfTestCache(std::string directory, std::string key);
  /// nullopt where no self-test can stand for another: the backend cannot say what it depends on,
  /// the build cannot be told from others, or a deliberate defect is on (base/faults.h).
  static std::optional<SelfTestCache> For(backends::Backend& backend);

  /// What was stored under this very key within kTestedFor before `now` (with a control that did
  /// not work: kFailedFor), by this user, in a file and a directory that nobody else may write to;
  /// nullopt otherwise.
  std::optional<Capabilities> Load(Clock::time_point now = Clock::now()) const;
  /// Replaces what is there, at once or not at all. It is only a cache: failures are ignored.
  void Store(const Capabilities& capabilities, Clock::time_point now = Clock::now()) const;
  /// The name of the file in the directory.
  std::string FileName() const;

  bool operator==(const SelfTestCache&) const = default;

 private:
  std::string directory_;
  std::string key_;
};

}  // namespace palmshed::run
