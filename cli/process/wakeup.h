// A flag that a poll loop can wait for.
#pragma once

#include "cli/process/descriptor.h"
#include "palmshed/error.h"

namespace palmshed::cli {

/// Once set it stays set until Clear(); its descriptor is then readable. Set() is
/// async-signal-safe.
class Wakeup {
 public:
  static Result<Wakeup> Create();

  void Set() const;
  void Clear() const;
  int fd() const { return event_.get(); }

 private:
  explicit Wakeup(Descriptor event) : event_(std::move(event)) {}

  Descriptor event_;
};

}  // namespace palmshed::cli
