// Limits without control groups.
//
// Theory of operation. CPU time is counted by the kernel on behalf of this process
// (kernel/task_clock.h) where the host allows it, else added up from looks at /proc. Memory is
// found by looking. The number of processes is held by RLIMIT_NPROC, which in a user namespace of
// the sandbox's own counts the sandbox alone.
//
// Looking happens on a thread of the sandbox's, because files in /proc can block for as long as a
// hostile program makes them: it then holds up the looks at its own sandbox and nobody else. The
// thread is there only while an execution is old enough to be worth a look, and a second longer.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/native/enforcer.h"
#include "backends/native/sampled_members.h"
#include "backends/native/sampled_memory.h"
#include "base/unique_fd.h"
#include "kernel/process_table.h"
#include "palmshed/error.h"
#include "plan/plan.h"

namespace palmshed::backends::native {

/// What there is to know about a sandbox.
struct SampledSandbox {
  pid_t init = 0;             ///< Its number on the host; alive as long as there are executions.
  bool own_processes = true;  ///< It has a pid namespace.
  bool own_proc = true;       ///< With its own /proc mounted.
  bool own_users = true;      ///< It has a user namespace.
  std::vector<std::string> tmpfs{"/dev/shm"};  ///< Its file systems in memory, as it sees them.
  /// Opens /proc/sysvipc/shm inside; not on the loop's thread. Empty: segments that nobody has
  /// attached do not count.
  std::function<Result<UniqueFd>()> open_sysv{};
  bool task_clock = true;  ///< False: as if the host did not allow it.
};

struct SampledRun;
struct SampledSight;

class SampledSource final : public EnforcerSource {
 public:
  /// Errors: UNSUPPORTED where this process may not look at that of the sandbox.
  static Result<std::unique_ptr<SampledSource>> Create(SampledSandbox sandbox);
  ~SampledSource() override;  ///< Waits for a look that is going on.
  SampledSource(const SampledSource&) = delete;
  SampledSource& operator=(const SampledSource&) = delete;

  bool NeedsChild() const override { return true; }
  plan::Limits Covered(const plan::Limits& limits) const override;
  Result<std::unique_ptr<Enforcer>> Make() override;

  // ---- For its enforcers.
  const SampledSandbox& sandbox() const { return sandbox_; }
  unsigned processors() const { return processors_; }
  /// What is open already, or opens it; not on the loop's thread.
  Result<std::shared_ptr<SampledSight>> Open();
  std::uint32_t NextRun() { return ++last_run_; }
  /// Looks at `run` from now on, until it has ended.
  void Join(std::shared_ptr<SampledRun> run);
  void Leave(const SampledRun& run);

 private:
  using Runs = std::vector<std::shared_ptr<SampledRun>>;
  explicit SampledSource(SampledSandbox sandbox) : sandbox_(std::move(sandbox)) {}
  Result<kernel::ProcessTable> OpenTable() const;
  Result<std::shared_ptr<SampledSight>> OpenAll() const;
  void Serve();
  void Look(const Runs& runs);

  SampledSandbox sandbox_;
  std::uint64_t memfd_device_ = 0;
  unsigned processors_ = 1;
  std::atomic<std::uint32_t> last_run_ = 0;

  std::mutex mu_;
  std::condition_variable changed_;
  Runs runs_;
  std::weak_ptr<SampledSight> sight_;
  bool serving_ = false;
  bool stopping_ = false;
  std::thread thread_;

  // The thread's own.
  Members members_;
  std::set<Members::Run> known_;
};

}  // namespace palmshed::backends::native
