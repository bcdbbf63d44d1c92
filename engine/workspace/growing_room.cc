#include "workspace/growing_room.h"

#include <algorithm>
#include <cstdint>
#include <expected>
#include <memory>
#include <utility>

#include "palmshed/error.h"
#include "workspace/disk_account.h"
#include "workspace/disk_usage.h"

namespace palmshed::workspace {
namespace {

// What is granted and not used counts as used until the next measurement.
constexpr std::uint64_t kLeastStep = 1U << 20;
constexpr std::uint64_t kLargestStep = 64U << 20;

}  // namespace

Result<void> GrowingRoom::Ensure(std::uint64_t bytes) {
  if (account_ == nullptr) return {};
  const DiskAmount wanted = RoomFor(bytes);
  if (tickets_.empty()) return Reserve(wanted);
  if (wanted.bytes <= granted_) return {};
  const std::uint64_t missing = wanted.bytes - granted_;
  const std::uint64_t step = std::clamp(granted_, kLeastStep, kLargestStep);
  // Close to the quota, what is missing may fit where a step does not.
  if (step > missing && Reserve({.bytes = step})) return {};
  return Reserve({.bytes = missing});
}

Result<void> GrowingRoom::Reserve(const DiskAmount& more) {
  const DiskAmount less = std::exchange(less_, {});
  auto ticket = account_->Reserve(workspace_, {.more = more, .less = less, .grows = true});
  if (!ticket) {
    less_ = less;
    return std::unexpected(std::move(ticket.error()));
  }
  granted_ += more.bytes;
  tickets_.push_back(std::move(*ticket));
  return {};
}

void GrowingRoom::Done() {
  for (const auto& ticket : tickets_) ticket->Done();
}

}  // namespace palmshed::workspace
