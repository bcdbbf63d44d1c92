// What bears a sandbox's executions without limits (child/bearer.h), so that most of what there is
// to do for one has been done when it comes. One at a time: where several run at once, init makes
// the others' processes.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "backends/native/armed_children.h"
#include "palmshed/error.h"

namespace palmshed::backends::native {

/// Any thread.
class PlainBearer {
 public:
  struct Context {
    std::function<Result<std::uint32_t>()> ask;  ///< As of ArmedChildren.
    std::function<void(std::uint32_t)> dismiss;  ///< As of ArmedChildren.
  };
  struct Bearer {
    std::uint32_t sequence = 0;
    SharedSocket socket{};  ///< Its own; null: it is reached by way of init.
  };

  explicit PlainBearer(Context context) : context_(std::move(context)) {}

  /// The bearer, where one waits. From the first call on one is wanted.
  std::optional<Bearer> Take();
  /// What it was taken for is over. `waits`: so is that.
  void Return(Bearer bearer, bool waits);
  /// Whether Prepare would ask for one.
  bool wanted() const;
  /// Asks init for one, if it is wanted and not there.
  void Prepare();
  /// Nothing has run for a while: a bearer that waits is dismissed.
  void Rest();

  /// Init's answer. False, and `child` untouched: somebody else had asked.
  bool OnArmed(std::uint32_t sequence, Result<ArmedChildren::Armed>& child);
  /// It has died.
  void OnGone(std::uint32_t sequence);
  /// Init is dead.
  void OnDead();

 private:
  enum class State : std::uint8_t { kUnwanted, kAbsent, kAsked, kWaits, kTaken, kDead };

  const Context context_;
  mutable std::mutex mu_;
  State state_ = State::kUnwanted;
  Bearer bearer_{};  ///< Asked for, or there.
};

}  // namespace palmshed::backends::native
