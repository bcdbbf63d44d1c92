#include <cerrno>
#include <cstdint>
#include <cstring>

#include "child/failure.h"
#include "child/kernel_abi.h"
#include "child/raw.h"
#include "child/setup.h"
#include "child/wire.h"

namespace palmshed::child {
namespace {

constexpr std::size_t Padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

// One rule record at `at`, which is then moved past it; nullptr when it does not fit.
const LandlockRule* NextRule(const SetupPlan& plan, std::size_t* at, const char** path) {
  if (plan.rules_bytes - *at < sizeof(LandlockRule)) return nullptr;
  const auto* const rule = reinterpret_cast<const LandlockRule*>(plan.rules + *at);
  const std::size_t whole = Padded(sizeof(LandlockRule) + std::size_t{rule->bytes} + 1);
  if (whole > plan.rules_bytes - *at) return nullptr;
  *path = plan.rules + *at + sizeof(LandlockRule);
  if ((*path)[rule->bytes] != '\0') return nullptr;
  *at += whole;
  return rule;
}

// Opened here, in the sandbox's own view: a rule speaks of the file that the path leads to now.
long AddRule(long ruleset, const LandlockRule& rule, const char* path) {
  const long place = OpenAt(AT_FDCWD, path, O_PATH);
  if (place == -ENOENT && rule.optional != 0) return 0;
  if (place < 0) return place;
  const LandlockPathBeneath beneath{rule.access, static_cast<std::int32_t>(place)};
  const long added = Call(SYS_landlock_add_rule, ruleset, kLandlockRulePathBeneath, &beneath, 0);
  Close(static_cast<int>(place));
  return added;
}

Failure AddRules(long ruleset, const SetupPlan& plan) {
  std::size_t at = 0;
  for (std::uint32_t index = 0; index < plan.config->rules; ++index) {
    const char* path = nullptr;
    const LandlockRule* const rule = NextRule(plan, &at, &path);
    if (rule == nullptr) return {Step::kLandlockRule, EBADMSG, index};
    const long added = AddRule(ruleset, *rule, path);
    if (added < 0) return FailureIf(added, Step::kLandlockRule, index);
  }
  return kSuccess;
}

}  // namespace

Failure ParseInitConfig(const char* message, std::size_t bytes, SetupPlan* plan) {
  if (bytes < sizeof(InitConfig)) return {Step::kReadConfig, EBADMSG};
  plan->config = reinterpret_cast<const InitConfig*>(message);
  const std::size_t filter_bytes =
      std::size_t{plan->config->filter_instructions} * sizeof(FilterInstruction);
  if (plan->config->filter_instructions > kMaxFilterInstructions ||
      plan->config->rlimit_count > kMaxRlimits || filter_bytes > bytes - sizeof(InitConfig)) {
    return {Step::kReadConfig, EBADMSG};
  }
  plan->filter = reinterpret_cast<const FilterInstruction*>(message + sizeof(InitConfig));
  const std::size_t left = bytes - sizeof(InitConfig) - filter_bytes;
  const std::uint64_t mount_bytes = plan->config->host_mount_bytes;
  if (plan->config->host_mounts > kMaxHostMounts || mount_bytes > left || mount_bytes % 8 != 0) {
    return {Step::kReadConfig, EBADMSG};
  }
  plan->host_mounts = message + sizeof(InitConfig) + filter_bytes;
  plan->rules = plan->host_mounts + mount_bytes;
  plan->rules_bytes = left - mount_bytes;
  return kSuccess;
}

Failure ApplyLandlock(const SetupPlan& plan) {
  const LandlockRuleset attributes{plan.config->handled_fs, plan.config->handled_net,
                                   plan.config->scoped};
  if ((attributes.handled_fs | attributes.handled_net | attributes.scoped) == 0) return kSuccess;
  const long ruleset = Call(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
  if (ruleset < 0) return FailureIf(ruleset, Step::kLandlockCreate);
  const Failure added = AddRules(ruleset, plan);
  if (added.failed()) return added;
  const long restricted = Call(SYS_landlock_restrict_self, ruleset, 0);
  Close(static_cast<int>(ruleset));
  return FailureIf(restricted, Step::kLandlockRestrict);
}

Failure LoadFilter(const SetupPlan& plan) {
  if (plan.config->filter_instructions == 0) return kSuccess;
  const FilterProgram program{static_cast<std::uint16_t>(plan.config->filter_instructions),
                              plan.filter};
  return FailureIf(Call(SYS_seccomp, kSeccompSetModeFilter, 0, &program), Step::kSeccomp);
}

}  // namespace palmshed::child
