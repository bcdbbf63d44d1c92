// The strings of an ExecRequest, and the arrays of pointers that execve(2) wants.
#pragma once

#include <cstddef>
#include <cstdint>

#include "child/failure.h"
#include "child/wire.h"

namespace palmshed::child {

/// Pointers for requests of ordinary size live in memory of the slot, larger ones are mapped.
struct PointerSpace {
  static constexpr std::size_t kCapacity = 2048;
  const char* words[kCapacity];
};

class Payload {
 public:
  Payload() = default;
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;
  ~Payload() { Close(); }

  /// Either `inline_bytes` hold the payload or, when `file` is not negative, that file does.
  /// Failure at kRequest when the strings are not as many as `request` says.
  Failure Open(const ExecRequest& request, const char* inline_bytes, int file, PointerSpace* space);
  /// Gives back what was mapped. Idempotent.
  void Close();
  /// Closes nothing: somebody else has had it open, in memory of their own.
  void Forget() { file_ = arrays_ = Mapping{}; }

  const char* const* paths() const { return paths_; }
  const char* const* arguments() const { return arguments_; }
  const char* const* environment() const { return environment_; }
  const char* directory() const { return directory_; }

 private:
  struct Mapping {
    void* address = nullptr;
    std::size_t bytes = 0;
  };

  Failure MapFile(int file, std::uint64_t bytes);
  Failure PlacePointers(std::size_t count, PointerSpace* space);
  bool TakeStrings(std::uint32_t count, const char*** next);

  Mapping file_;
  Mapping arrays_;
  const char* text_ = nullptr;
  const char* end_ = nullptr;
  const char** pointers_ = nullptr;
  const char* const* paths_ = nullptr;
  const char* const* arguments_ = nullptr;
  const char* const* environment_ = nullptr;
  const char* directory_ = nullptr;
};

}  // namespace palmshed::child
