#include "kernel/seccomp_filter.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace palmshed::kernel {
namespace {

constexpr std::size_t kMaxJump = 255;  // A conditional jump's offset is one byte.
constexpr std::uint32_t kLongestChain =
    4;  // Comparisons in a row before the search halves instead.

std::uint32_t OffsetOf(const ArgWord& word) {
  // Both architectures are little-endian: the low half of an argument comes first.
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + word.index * 8 +
         (word.high ? 4U : 0U);
}

// Emits from the last instruction to the first: jumps only go forward, so every target is known
// when the jump is made.
class BackwardAssembler {
 public:
  using Label = std::size_t;  // Distance of an instruction from the program's end.

  Label Return(Verdict verdict) {
    const auto known = std::ranges::find(returns_, verdict, &ReturnAt::verdict);
    if (known != returns_.end()) return known->label;
    const Label label = Emit(BPF_RET | BPF_K, verdict.value);
    returns_.push_back({verdict, label});
    return label;
  }

  Label Jump(std::uint16_t comparison, std::uint32_t value, Label yes, Label no) {
    const Label here = code_.size();
    return Emit(static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K), value, Offset(here, yes),
                Offset(here, no));
  }

  Label Load(std::uint32_t offset, Label next) {
    MakeNext(next);
    return Emit(BPF_LD | BPF_W | BPF_ABS, offset);
  }

  Label Load(const ArgWord& word, Label next) {
    if (word.mask != std::numeric_limits<std::uint32_t>::max()) {
      MakeNext(next);
      next = Emit(BPF_ALU | BPF_AND | BPF_K, word.mask);
    }
    return Load(OffsetOf(word), next);
  }

  std::vector<sock_filter> Finish() && {
    std::ranges::reverse(code_);
    return std::move(code_);
  }

 private:
  struct ReturnAt {
    Verdict verdict;
    Label label;
  };

  static std::uint8_t Offset(Label from, Label to) {
    const std::size_t distance = from - to - 1;
    PALMSHED_CHECK(distance <= kMaxJump);
    return static_cast<std::uint8_t>(distance);
  }

  Label Emit(std::uint16_t code, std::uint32_t k, std::uint8_t yes = 0, std::uint8_t no = 0) {
    code_.push_back({.code = code, .jt = yes, .jf = no, .k = k});
    return code_.size() - 1;
  }

  // Instructions other than jumps continue with the one behind them.
  void MakeNext(Label next) {
    if (next + 1 != code_.size()) Emit(BPF_JMP | BPF_JA, Offset(code_.size(), next));
  }

  std::vector<sock_filter> code_;
  std::vector<ReturnAt> returns_;
};

using Label = BackwardAssembler::Label;

// The whole line of numbers, cut where the decision changes. Equal decisions are the same object.
struct Interval {
  std::uint32_t first;
  std::uint32_t last;
  const Decision* decision;
};

class Line {
 public:
  explicit Line(const FilterSpec& spec) : known_{&spec.fallback} {
    std::vector<const NumberRange*> sorted;
    sorted.reserve(spec.ranges.size());
    for (const NumberRange& range : spec.ranges) sorted.push_back(&range);
    std::ranges::sort(sorted, {}, &NumberRange::first);
    std::uint64_t next = 0;
    for (const NumberRange* range : sorted) {
      PALMSHED_CHECK(range->first >= next && range->last >= range->first);
      if (range->first > next) Add(next, range->first - 1, spec.fallback);
      Add(range->first, range->last, range->decision);
      next = std::uint64_t{range->last} + 1;
    }
    constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();
    if (next <= kLast) Add(next, kLast, spec.fallback);
  }

  std::vector<Interval> Cut() && { return std::move(intervals_); }

 private:
  void Add(std::uint64_t first, std::uint32_t last, const Decision& decision) {
    const Decision* same = Known(decision);
    if (!intervals_.empty() && intervals_.back().decision == same) {
      intervals_.back().last = last;
    } else {
      intervals_.push_back({static_cast<std::uint32_t>(first), last, same});
    }
  }

  const Decision* Known(const Decision& decision) {
    for (const Decision* known : known_) {
      if (*known == decision) return known;
    }
    known_.push_back(&decision);
    return &decision;
  }

  std::vector<const Decision*> known_;
  std::vector<Interval> intervals_;
};

// Chooses how to search the line: halving (one comparison with >=) or, where single numbers stand
// out of a common background, a chain of comparisons with ==, which needs one comparison per such
// number instead of two. Finds the fewest instructions, then the shallowest tree.
class SearchPlan {
 public:
  explicit SearchPlan(const std::vector<Interval>& line)
      : line_(line),
        size_(line.size()),
        best_(size_ * size_),
        by_first_(size_ * size_),
        by_last_(size_ * size_) {
    for (std::size_t length = 1; length <= size_; ++length) {
      for (std::size_t from = 0; from + length <= size_; ++from) Choose(from, from + length - 1);
    }
  }

  static constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max() / 4;
  static constexpr std::uint32_t kOneInstruction = 1U << 10;
  static constexpr std::uint32_t kDepth = kOneInstruction - 1;

  struct Step {
    std::uint32_t cost = kUnknown;         // Instructions, then depth: the lower is the better.
    std::uint32_t split = 0;               // First interval of the upper half.
    const Decision* background = nullptr;  // Set: a chain, not a split.
  };

  const Step& At(std::size_t from, std::size_t to) const { return best_[from * size_ + to]; }

 private:
  // One more comparison before the worse of two halves.
  static std::uint32_t Join(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t depth = std::max(low & kDepth, high & kDepth);
    return (low & ~kDepth) + (high & ~kDepth) + depth + kOneInstruction + 1;
  }

  void Choose(std::size_t from, std::size_t to) {
    Step best = Chain(from, to);
    const std::uint32_t* const low = by_first_.data() + from * size_ + from;
    const std::uint32_t* const high = by_last_.data() + to * size_ + from + 1;
    for (std::size_t i = 0; i < to - from; ++i) {
      const std::uint32_t cost = Join(low[i], high[i]);
      if (cost >= best.cost) continue;
      best = {.cost = cost, .split = static_cast<std::uint32_t>(from + 1 + i)};
    }
    best_[from * size_ + to] = best;
    by_first_[from * size_ + to] = best.cost;
    by_last_[to * size_ + from] = best.cost;
  }

  // The cost is kUnknown where no chain is short enough.
  Step Chain(std::size_t from, std::size_t to) const {
    if ((to - from) / 2 > kLongestChain) return {};
    for (std::size_t at = from; at <= std::min(from + 1, to); ++at) {
      const std::uint32_t islands = Islands(from, to, line_[at].decision);
      if (islands > kLongestChain) continue;
      return {.cost = islands * (kOneInstruction + 1), .background = line_[at].decision};
    }
    return {};
  }

  std::uint32_t Islands(std::size_t from, std::size_t to, const Decision* background) const {
    std::uint32_t islands = 0;
    for (std::size_t at = from; at <= to; ++at) {
      if (line_[at].decision == background) continue;
      if (line_[at].first != line_[at].last) return kUnknown;
      ++islands;
    }
    return islands;
  }

  const std::vector<Interval>& line_;
  std::size_t size_;
  std::vector<Step> best_;
  // The costs once more, so that both sides of all splits of a stretch lie in a row.
  std::vector<std::uint32_t> by_first_;
  std::vector<std::uint32_t> by_last_;
};

class Compiler {
 public:
  explicit Compiler(const FilterSpec& spec) : spec_(spec), line_(Line(spec).Cut()), plan_(line_) {}

  std::vector<sock_filter> Compile() && {
    const Label foreign = code_.Return(spec_.foreign);
    Label next = Search(0, line_.size() - 1);
    next = code_.Load(static_cast<std::uint32_t>(offsetof(seccomp_data, nr)), next);
    next = code_.Jump(BPF_JEQ, static_cast<std::uint32_t>(spec_.arch), next, foreign);
    code_.Load(static_cast<std::uint32_t>(offsetof(seccomp_data, arch)), next);
    return std::move(code_).Finish();
  }

 private:
  Label Search(std::size_t from, std::size_t to) {
    const SearchPlan::Step& step = plan_.At(from, to);
    if (step.background != nullptr) return Chain(from, to, step.background);
    const Label low = Search(from, step.split - 1);
    const Label high = Search(step.split, to);
    return code_.Jump(BPF_JGE, line_[step.split].first, high, low);
  }

  Label Chain(std::size_t from, std::size_t to, const Decision* background) {
    std::vector<std::pair<std::uint32_t, Label>> islands;
    for (std::size_t at = from; at <= to; ++at) {
      if (line_[at].decision == background) continue;
      islands.emplace_back(line_[at].first, Decide(*line_[at].decision));
    }
    Label next = Decide(*background);
    for (const auto& [number, decided] : islands) {
      next = code_.Jump(BPF_JEQ, number, decided, next);
    }
    return next;
  }

  Label Decide(const Decision& decision) {
    if (decision.values.empty()) return code_.Return(decision.otherwise);
    for (const auto& [known, label] : decided_) {
      if (*known == decision) return label;
    }
    const Label label = DecideByArgument(decision);
    decided_.emplace_back(&decision, label);
    return label;
  }

  Label DecideByArgument(const Decision& decision) {
    std::vector<std::pair<std::uint32_t, Label>> tests;
    tests.reserve(decision.values.size());
    for (std::size_t i = 0; i < decision.values.size(); ++i) {
      tests.emplace_back(decision.values[i], Decide(decision.then[i]));
    }
    Label next = code_.Return(decision.otherwise);
    for (const auto& [value, then] : tests) next = code_.Jump(BPF_JEQ, value, then, next);
    return code_.Load(decision.argument, next);
  }

  const FilterSpec& spec_;
  std::vector<Interval> line_;
  SearchPlan plan_;
  BackwardAssembler code_;
  std::vector<std::pair<const Decision*, Label>> decided_;
};

}  // namespace

Decision Decision::When(const std::vector<std::uint32_t>& equals, const Decision& decision) && {
  values.insert(values.end(), equals.begin(), equals.end());
  then.insert(then.end(), equals.size(), decision);
  return std::move(*this);
}

std::vector<sock_filter> CompileFilter(const FilterSpec& spec) { return Compiler(spec).Compile(); }

}  // namespace palmshed::kernel
