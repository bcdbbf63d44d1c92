#include "run/selftest_limits.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/result.h"
#include "palmshed/capabilities.h"
#include "palmshed/error.h"
#include "palmshed/options.h"
#include "palmshed/result.h"
#include "palmshed/units.h"
#include "plan/plan.h"
#include "run/execution.h"
#include "run/sandbox.h"
#include "run/selftest_probe.h"

namespace palmshed::run {
namespace {

using namespace std::chrono_literals;
using namespace palmshed::literals;
using plan::Enforcement;
using plan::Offer;

/// A limit that is met ends the program long before, even on an emulated processor.
constexpr Millis kOverPatience = 5s;

/// A control as it is reported.
struct Subject {
  std::string_view name;
  Offer::Limit Offer::* offered;
  std::string_view lost;
};

constexpr Subject kMemory{"memory", &Offer::memory, "a program could use up the host's memory"};
constexpr Subject kPids{"pids", &Offer::pids, "a program could start processes without end"};
constexpr Subject kCpuTime{"cpuTimeLimit", &Offer::cpu_time,
                           "only the wall clock would end a program that computes"};
constexpr Subject kCpuQuota{"cpuQuota", &Offer::cpu_quota,
                            "a program could take all processors to itself"};
constexpr Subject kDisk{"diskQuota", &Offer::disk, "a program could fill the host's disk"};
constexpr Subject kStorageMemory{"storage.memory", &Offer::storage_memory,
                                 "files cannot be kept in memory"};
constexpr Subject kStorageLoop{"storage.loop", &Offer::storage_loop,
                               "disk space cannot be bounded by the kernel"};
constexpr std::array kSubjects{kMemory, kPids,          kCpuTime,    kCpuQuota,
                               kDisk,   kStorageMemory, kStorageLoop};

/// One run of a program under a limit.
struct Trial {
  std::string_view limit;  ///< For people.
  ExecOptions options{};
};

/// A program that uses something up, and the limits that it goes over and stays below.
struct Proof {
  Subject subject;
  std::string_view act;  ///< What the program does, for people.
  std::vector<std::string> program;
  Trial over;
  Trial under;
  std::function<bool(const ExecResult&)> stopped;
};

bool ForkWasRefused(const ExecResult& result) {
  const Reports reports = ParseReports(result.out.bytes);
  const auto found = reports.find("fork");
  return found != reports.end() && found->second == EAGAIN;
}

std::function<bool(const ExecResult&)> EndedBy(Cause cause) {
  return [cause](const ExecResult& result) { return result.termination.cause == cause; };
}

std::vector<Proof> LimitProofs() {
  return {{kMemory,
           "32 MiB of memory",
           {"memory", std::to_string(Count(32_MiB))},
           {"16 MiB", {.memory = 16_MiB}},
           {"256 MiB", {.memory = 256_MiB}},
           EndedBy(Cause::kMemory)},
          {kPids,
           "16 forks",
           {"forks", "16"},
           {"8", {.pids = 8}},
           {"64", {.pids = 64}},
           ForkWasRefused},
          {kCpuTime,
           "100 ms of CPU time",
           {"cpu", "100"},
           {"20 ms", {.cpu_time_limit = 20ms}},
           {"10 s", {.cpu_time_limit = 10s}},
           EndedBy(Cause::kCpuTime)}};
}

std::string MechanismOf(const Offer::Limit& offered) {
  if (offered.enforcement == Enforcement::kNone || !offered.mechanism.empty()) {
    return offered.mechanism;
  }
  return offered.enforcement == Enforcement::kKernel ? "kernel" : "sampling";
}

Control MakeControl(const Subject& subject, const Offer& offer) {
  return {.name = std::string(subject.name),
          .mechanism = MechanismOf(offer.*subject.offered),
          .lost = std::string(subject.lost)};
}

Control NotOffered(const Subject& subject, const Offer& offer) {
  const auto& [reason, remedy] = (offer.*subject.offered).missing;
  Control control = MakeControl(subject, offer);
  control.detail = "not offered: " + (reason.empty() ? "nothing on this host enforces it" : reason);
  control.remedy = remedy;
  return control;
}

bool IsOffered(const Subject& subject, const Offer& offer) {
  return (offer.*subject.offered).enforcement != Enforcement::kNone;
}

Control Failed(Control control, const Error& error) {
  control.detail = error.message;
  control.remedy = error.remedy;
  return control;
}

/// E.g. "memory", or "exited (fork: EAGAIN)".
std::string Shown(const ExecResult& result) {
  std::string text(ToString(result.termination.cause));
  for (const auto& [name, number] : ParseReports(result.out.bytes)) {
    if (name.ends_with("_ms")) continue;  // A measurement.
    if (number != 0 && ::strerrorname_np(number) != nullptr) {
      text.append(" (").append(name).append(": ").append(::strerrorname_np(number)).append(")");
    }
  }
  return text;
}

Control Judge(const Proof& proof, const Offer& offer, const ExecResult& over,
              const ExecResult& under) {
  Control control = MakeControl(proof.subject, offer);
  control.works = proof.stopped(over) && under.ok();
  control.detail = std::string(proof.act) + " with a limit of " + std::string(proof.over.limit) +
                   ": " + Shown(over) + ", with one of " + std::string(proof.under.limit) + ": " +
                   Shown(under);
  return control;
}

using Started = Result<std::shared_ptr<ExecutionState>>;

Started Begin(SandboxState& sandbox, const Proof& proof, const Trial& trial, Millis patience) {
  ExecOptions options = trial.options;
  options.timeout = patience;
  // It holds what it has until its input ends: whoever samples needs time to see it.
  options.stdin_pipe = true;
  return StartProbe(sandbox, proof.program, std::move(options));
}

/// Both halves of a proof, while they run.
struct Running {
  Started over;
  Started under;
};

Running Begin(SandboxState& sandbox, const Proof& proof) {
  return {.over = Begin(sandbox, proof, proof.over, kOverPatience),
          .under = Begin(sandbox, proof, proof.under, kProbePatience)};
}

ExecResult Release(ExecutionState& execution) {
  (void)AwaitReport(execution);
  (void)execution.CloseStdin();
  return AwaitProbe(execution);
}

Control Finish(const Proof& proof, const Offer& offer, const Running& running) {
  const Control control = MakeControl(proof.subject, offer);
  // Nothing is left running, whichever could not be started.
  if (!running.under && running.over) (*running.over)->Cancel();
  if (!running.under) return Failed(control, running.under.error());
  const ExecResult under = Release(**running.under);
  if (!running.over) return Failed(control, running.over.error());
  return Judge(proof, offer, AwaitProbe(**running.over), under);
}

// ---- CPU quota: throttled, never ended, so that it takes a measurement.

/// What a tenth of a processor comes to, with what the kernel lets through in excess: a period's
/// share that began before, and one tick for each processor in use.
int ThrottledMs(int window_ms) { return window_ms / 10 + 35; }

struct Use {
  int cpu_ms = 0;
  bool held_up = false;  ///< As the kernel counted it, where it does.
};

Result<Use> CpuUsed(const Started& started) {
  if (!started) return std::unexpected(started.error());
  const ExecResult result = AwaitProbe(**started);
  const Reports reports = ParseReports(result.out.bytes);
  const auto found = reports.find("cpu_ms");
  if (found == reports.end()) {
    return std::unexpected(Error{.message = "the program did not report what it had used"});
  }
  return Use{.cpu_ms = found->second,
             .held_up = std::ranges::any_of(result.termination.evidence, [](const auto& entry) {
               return entry.first == backends::kThrottledMs && entry.second > 0;
             })};
}

/// The one used no more than its share. That this was not for want of processors, the kernel has
/// counted, or the other shows, which got more at the same time.
bool OnlyOneIsHeldUp(const Use& held, const Use& freely, int bound_ms) {
  if (held.cpu_ms > bound_ms || freely.held_up) return false;
  return held.held_up || (freely.cpu_ms > bound_ms && freely.cpu_ms >= 2 * held.cpu_ms);
}

/// Both at the same time, so that a busy machine is busy for both.
Control MeasureQuota(SandboxState& sandbox, const Offer& offer, int window_ms) {
  Control control = MakeControl(kCpuQuota, offer);
  const std::vector<std::string> program{"cpu", "0", std::to_string(window_ms)};
  const Started held_one = StartProbe(sandbox, program, {.cpu_quota = 0.1});
  const Started free_one = StartProbe(sandbox, program);
  const auto held = CpuUsed(held_one);
  const auto freely = CpuUsed(free_one);
  if (!held) return Failed(control, held.error());
  if (!freely) return Failed(control, freely.error());
  control.works = OnlyOneIsHeldUp(*held, *freely, ThrottledMs(window_ms));
  control.detail = "CPU time used in " + std::to_string(window_ms) +
                   " ms with a quota of 0.1: " + std::to_string(held->cpu_ms) +
                   " ms, without one: " + std::to_string(freely->cpu_ms) + " ms";
  return control;
}

Control TestQuota(SandboxState& sandbox, const Offer& offer) {
  if (!IsOffered(kCpuQuota, offer)) return NotOffered(kCpuQuota, offer);
  // On a machine that is busy otherwise, the free program may not get enough to tell.
  constexpr std::array kWindowsMs{150, 300, 600};
  Control control;
  for (const int window_ms : kWindowsMs) {
    control = MeasureQuota(sandbox, offer, window_ms);
    if (control.works) break;
  }
  return control;
}

// ---- Disk

constexpr Bytes kQuota = 8_MiB;

Proof DiskProof(const Subject& subject, Bytes size, std::string_view act) {
  return {subject,       act,           {"write", std::to_string(Count(size))},
          {"8 MiB", {}}, {"8 MiB", {}}, EndedBy(Cause::kDisk)};
}

/// One after the other, since they share the quota. The small one first: what it wrote counts.
Result<Control> TestQuotaOf(SandboxState& sandbox, const Subject& subject, const Offer& offer,
                            std::span<const std::byte> probe) {
  const Proof small = DiskProof(subject, 1_MiB, "1 MiB of files");
  const Proof large = DiskProof(subject, 32_MiB, "32 MiB of files");
  PALMSHED_TRY_VOID(InstallProbe(sandbox, probe));
  PALMSHED_TRY(const auto under, Begin(sandbox, small, small.under, kProbePatience));
  const ExecResult kept = Release(*under);
  PALMSHED_TRY(const auto over, Begin(sandbox, large, large.over, kOverPatience));
  const ExecResult stopped = AwaitProbe(*over);
  Control control = MakeControl(subject, offer);
  control.works = large.stopped(stopped) && kept.ok();
  control.detail = "with a quota of 8 MiB, " + std::string(large.act) + ": " + Shown(stopped) +
                   ", " + std::string(small.act) + ": " + Shown(kept);
  return control;
}

Control TestStorageOf(const MakeStorage& make, const Subject& subject, Storage storage,
                      const Offer& offer, std::span<const std::byte> probe) {
  if (!IsOffered(subject, offer)) return NotOffered(subject, offer);
  const auto sandbox = make(kQuota, storage);
  if (!sandbox) return Failed(MakeControl(subject, offer), sandbox.error());
  const auto control = TestQuotaOf(**sandbox, subject, offer, probe);
  const auto destroyed = (*sandbox)->Destroy();
  if (!control) return Failed(MakeControl(subject, offer), control.error());
  if (!destroyed) return Failed(MakeControl(subject, offer), destroyed.error());
  return *control;
}

std::string NameOf(Enforcement enforcement) {
  return enforcement == Enforcement::kKernel ? "kernel" : "sampled";
}

}  // namespace

std::vector<Control> TestLimits(SandboxState& sandbox, const Offer& offer) {
  const std::vector<Proof> proofs = LimitProofs();
  std::vector<Running> running;
  for (const Proof& proof : proofs) {
    // What is not on offer is not started either.
    const bool offered = IsOffered(proof.subject, offer);
    running.push_back(offered ? Begin(sandbox, proof) : Running{});
  }
  std::vector<Control> controls;
  for (std::size_t i = 0; i < proofs.size(); ++i) {
    controls.push_back(IsOffered(proofs[i].subject, offer) ? Finish(proofs[i], offer, running[i])
                                                           : NotOffered(proofs[i].subject, offer));
  }
  controls.push_back(TestQuota(sandbox, offer));
  return controls;
}

std::vector<Control> TestStorage(const MakeStorage& make, const Offer& offer,
                                 std::span<const std::byte> probe) {
  return {TestStorageOf(make, kDisk, Storage::kDisk, offer, probe),
          TestStorageOf(make, kStorageMemory, Storage::kMemory, offer, probe),
          TestStorageOf(make, kStorageLoop, Storage::kLoop, offer, probe)};
}

void NoteUntested(const Error& error, std::vector<Control>& controls) {
  for (const Subject& subject : kSubjects) {
    controls.push_back(
        Failed({.name = std::string(subject.name), .lost = std::string(subject.lost)}, error));
  }
}

bool Works(const Capabilities& capabilities, std::string_view control) {
  return std::ranges::any_of(capabilities.controls,
                             [&](const Control& one) { return one.name == control && one.works; });
}

void SetLimitFlags(const Offer& offer, Capabilities& capabilities) {
  capabilities.memory_limits = Works(capabilities, kMemory.name);
  capabilities.pids_limits = Works(capabilities, kPids.name);
  capabilities.cpu_limits = Works(capabilities, kCpuTime.name);
  capabilities.cpu_quota_limits = Works(capabilities, kCpuQuota.name);
  capabilities.disk_quota = Works(capabilities, kDisk.name);
  if (capabilities.memory_limits) {
    capabilities.memory_enforcement = NameOf(offer.memory.enforcement);
  }
  if (capabilities.cpu_limits) {
    capabilities.cpu_time_enforcement = NameOf(offer.cpu_time.enforcement);
  }
  if (capabilities.pids_limits) {
    capabilities.pids_scope = offer.pids_of_sandbox ? "sandbox" : "execution";
  }
  capabilities.storage.clear();
  if (capabilities.filesystem) capabilities.storage.push_back(Storage::kDisk);
  if (Works(capabilities, kStorageMemory.name)) capabilities.storage.push_back(Storage::kMemory);
  if (Works(capabilities, kStorageLoop.name)) capabilities.storage.push_back(Storage::kLoop);
}

}  // namespace palmshed::run
