#include "backends/native/sampled_members.h"

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "kernel/process_table.h"

namespace palmshed::backends::native {
namespace {

using kernel::ProcessId;
using kernel::ProcessStat;
using std::chrono::nanoseconds;

// Own time and waited time are each cut to ticks twice, for user and system.
constexpr nanoseconds kRounding = std::chrono::milliseconds(20);

// Sessions without a member are remembered, for whoever of them was never seen; but not for ever.
constexpr std::size_t kMaxSessions = 4096;

}  // namespace

void Members::Add(Run run, const ProcessId& child) {
  seen_[child] = run;
  sessions_[run].insert(child.pid);  // It makes one before it becomes the program.
}

void Members::Remove(Run run) {
  std::erase_if(seen_, [run](const auto& entry) { return entry.second == run; });
  sessions_.erase(run);
}

Members::Census Members::Update(const std::vector<ProcessStat>& all,
                                const std::function<bool(pid_t)>& is_orphan) {
  const ProcessStat& init = all.front();
  std::map<pid_t, const ProcessStat*> by_number;
  for (const ProcessStat& process : all) by_number[process.id.pid] = &process;
  std::map<pid_t, std::optional<Run>> owners{{init.id.pid, std::nullopt}};
  const auto by_session = [&](pid_t session) -> std::optional<Run> {
    for (const auto& [run, sessions] : sessions_) {
      if (sessions.contains(session)) return run;
    }
    return std::nullopt;
  };
  const auto owner_of = [&](const ProcessStat& process) {
    std::vector<const ProcessStat*> way;  // Up, until somebody's owner is known.
    std::optional<Run> owner;
    for (const ProcessStat* at = &process; at != nullptr;) {
      if (const auto known = owners.find(at->id.pid); known != owners.end()) {
        owner = known->second;
        break;
      }
      way.push_back(at);
      if (const auto seen = seen_.find(at->id); seen != seen_.end()) {
        owner = seen->second;
        break;
      }
      const auto parent = by_number.find(at->parent);
      at = parent == by_number.end() || way.size() > all.size() ? nullptr : parent->second;
    }
    for (const ProcessStat* below : std::views::reverse(way)) {
      if (!owner) owner = by_session(below->session);
      owners[below->id.pid] = owner;
    }
    return owner;
  };
  const auto first_of = [&](const ProcessStat& process) {
    const ProcessStat* at = &process;
    for (std::size_t steps = 0; steps <= all.size() && at->parent != init.id.pid; ++steps) {
      const auto parent = by_number.find(at->parent);
      if (parent == by_number.end()) break;
      at = parent->second;
    }
    return at->id.pid;
  };
  Census census;
  std::vector<ProcessStat> unclaimed;
  std::map<ProcessId, Run> seen;
  for (const auto& [run, sessions] : sessions_) census[run];
  for (const ProcessStat& process : all) {
    if (process.id == init.id) continue;
    if (const auto owner = owner_of(process)) {
      census[*owner].push_back(process);
      seen[process.id] = *owner;
      auto& sessions = sessions_[*owner];
      if (sessions.size() >= kMaxSessions) sessions.clear();
      if (process.session != init.session) sessions.insert(process.session);
    } else if (process.session != init.session && is_orphan(first_of(process))) {
      unclaimed.push_back(process);
    }
  }
  seen_ = std::move(seen);
  for (auto& [run, members] : census) {
    members.insert(members.end(), unclaimed.begin(), unclaimed.end());
  }
  return census;
}

// The nearest ancestor that lives: who has waited for the dead, or for whoever has waited for it.
CpuLedger::Account* CpuLedger::HeirOf(const Account& dead, Accounts& now) const {
  pid_t number = dead.parent;
  for (std::size_t steps = 0; steps <= accounts_.size(); ++steps) {
    // The first of that number: one that started later can't have been a parent then.
    const auto live = now.lower_bound({.pid = number, .started = 0});
    if (live != now.end() && live->first.pid == number) return &live->second;
    const auto gone = accounts_.lower_bound({.pid = number, .started = 0});
    if (gone == accounts_.end() || gone->first.pid != number) return nullptr;
    number = gone->second.parent;
  }
  return nullptr;
}

void CpuLedger::Update(const std::vector<ProcessStat>& members) {
  Accounts now;
  for (const ProcessStat& member : members) {
    const auto before = accounts_.find(member.id);
    Account account =
        before != accounts_.end()
            ? before->second
            : Account{.parent = 0, .used = {}, .waited = {}, .waited_before = member.waited_cpu};
    account.parent = member.parent;
    account.used = member.cpu + member.waited_cpu;
    account.waited = member.waited_cpu;
    now[member.id] = account;
  }
  for (const auto& [id, dead] : accounts_) {
    if (now.contains(id)) continue;
    lost_ += dead.lost;
    Account* const heir = HeirOf(dead, now);
    if (heir != nullptr) {
      heir->dead += dead.used;
    } else {
      lost_ += dead.used;
    }
  }
  nanoseconds sum = lost_;
  for (auto& [id, account] : now) {
    const nanoseconds unseen = account.dead - (account.waited - account.waited_before) - kRounding;
    account.lost = std::max(account.lost, unseen);
    sum += account.used + account.lost;
  }
  accounts_ = std::move(now);
  total_ = std::max(total_, sum);
}

}  // namespace palmshed::backends::native
