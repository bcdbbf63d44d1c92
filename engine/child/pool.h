// Executions and the threads that carry them.
//
// Theory of operation. Init's main thread reaps orphans and makes slots. A slot is a raw thread; on
// kernels that have it, it has entered a Landlock signal scope of its own ahead of time, so that
// kill(-1) from it reaches the processes it has started and nobody else's. Of the slots that are
// not busy with an execution, one leads: it reads the engine's socket. Control requests it answers
// on the spot. An execution it registers, then passes the lead on and carries the execution itself.
// So requests are taken in the order in which they were sent, and a kill finds the execution it is
// meant for. One after another, executions alternate between two slots and no thread is made.
//
// Where no slot can be made (a limit on processes, no memory) the main thread leads until one is
// free: it serves control requests, so that what runs can be killed, and refuses executions.
#pragma once

#include <cstdint>

#include "child/atomic.h"
#include "child/failure.h"
#include "child/message.h"
#include "child/mutex.h"
#include "child/payload.h"
#include "child/wire.h"
#include "child/workload.h"

namespace palmshed::child {

struct Pool;

/// One thread and the execution it carries. Lives in a mapping of its own, next to its stacks.
struct Slot {
  Pool* pool;
  FutexWord thread;   ///< 1 while the thread lives; cleared by the kernel.
  FutexWord entered;  ///< Set when the thread is in its signal scope, or could not enter.
  Failure enter_failure;
  int orders;  ///< An eventfd that says: look at the orders.
  char* child_stack_top;
  char* stack_top;

  // Guarded by the pool's lock.
  bool serving;            ///< The thread leads, carries an execution, or will ask for the lead.
  std::uint32_t sequence;  ///< Of the execution; 0: none.
  bool starting;           ///< Inside vfork.

  // Signals to send, a bit each.
  Atomic<std::uint64_t> main_orders;
  Atomic<std::uint64_t> all_orders;
  // What orphans used that can have been nobody else's.
  Atomic<std::uint64_t> orphan_cpu_ns;
  Atomic<std::uint64_t> orphan_max_rss;
  Atomic<int> pidfd;
  int pid;

  // The request; the thread's own.
  ExecRequest request;
  int fds[kMaxFds];
  int fd_count;
  std::uint64_t received_ns;
  WorkloadPlan plan;
  PointerSpace pointers;
  alignas(8) char message[kMaxMessage];
};

/// Shared by all threads of init.
struct Pool {
  static constexpr std::uint32_t kMaxSlots = 1024;
  static constexpr std::uint32_t kMaxIdle = 2;

  // Constant once serving.
  bool signal_scope;
  bool proc;
  bool host_pids;      ///< No pid namespace: host_pids.h. The next three are used then.
  int proc_directory;  ///< Of the host; opened before Landlock.
  int supervisor;      ///< Its number.
  int guard;           ///< Its pidfd.
  int self;            ///< Init's number.
  int scope_ruleset;
  int null;
  int requests_to_main;  ///< An eventfd: a leader is missing, a slot is free, a start hangs.
  std::uint64_t first_mark;
  std::uint64_t unmarked;  ///< Init's own hard RLIMIT_RTTIME.
  std::uint32_t rlimit_count;
  Rlimit rlimits[kMaxRlimits];

  Mutex lock;  // Guards the following, and the executions of the slots.
  bool led;
  bool led_by_main;
  std::uint32_t idle;  ///< Slots waiting for the lead.
  std::uint32_t live;  ///< Executions.
  std::uint32_t slot_count;
  Slot* slots[kMaxSlots];

  Mutex proc_lock;   ///< One walk at a time: `proc_directory` has one position.
  FutexWord baton;   ///< Leads that were passed on and not yet taken.
  FutexWord reaped;  ///< Counts the main thread's rounds of reaping.
  Atomic<std::uint32_t> highest_pid;
};

/// slots.cc, main thread only: makes a slot, which then takes the lead or waits for it.
Failure CreateSlot(Pool* pool);
/// The two halves of it: starts the thread; waits until it is in its signal scope.
Failure StartSlot(Pool* pool, Slot** started);
Failure AwaitSlot(const Slot& slot);
/// slots.cc: gives up the lead to a waiting slot; false when there is none and nobody leads now.
bool PassLead(Pool* pool);
/// slots.cc: whether a slot that is not busy will ask for the lead. Under the pool's lock.
bool IsSlotComing(const Pool& pool);
/// slots.cc: wakes the main thread.
void NotifyMain(const Pool& pool);

/// requests.cc: reads and answers requests until an execution is registered in `slot`.
void Lead(Slot* slot);
/// requests.cc, main thread only: reads one request; executions are refused with `reason`.
void ServeWithoutSlot(Pool* pool, char* buffer, const Failure& reason);
/// requests.cc
void SendEnd(const InitReply& reply);

/// execution.cc: from the start of the registered execution to the answer.
void RunExecution(Slot* slot);

}  // namespace palmshed::child
