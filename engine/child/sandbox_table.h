// Which sandbox an init belongs to.
#pragma once

#include <cstdint>

namespace palmshed::child {

class SandboxTable {
 public:
  static constexpr std::uint32_t kCapacity = 16384;

  bool full() const { return count_ == kCapacity; }
  std::uint32_t count() const { return count_; }
  int pid(std::uint32_t row) const { return rows_[row].pid; }

  /// Precondition: not full.
  void Add(int pid, std::uint32_t sequence) { rows_[count_++] = {pid, sequence}; }

  /// False when `pid` is not in the table.
  bool Remove(int pid, std::uint32_t* sequence) {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (rows_[i].pid != pid) continue;
      *sequence = rows_[i].sequence;
      rows_[i] = rows_[--count_];
      return true;
    }
    return false;
  }

 private:
  struct Row {
    int pid;
    std::uint32_t sequence;
  };
  Row rows_[kCapacity] = {};
  std::uint32_t count_ = 0;
};

}  // namespace palmshed::child
