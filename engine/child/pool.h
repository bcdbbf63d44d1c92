// Executions and the threads that carry them.
//
// Theory of operation. Init's main thread reaps orphans and makes slots. A slot is a raw thread; on
// kernels that have it, it has entered a Landlock signal scope of its own ahead of time, so that
// kill(-1) from it reaches the processes it has started and nobody else's. Of the slots that are
// not busy with an execution, one leads: it reads the engine's socket. Control requests it answers
// on the spot. An execution it registers, then passes the lead on and carries the execution itself.
// So requests are taken in the order in which they were sent, and a kill finds the execution it is
// meant for. One after another, executions alternate between two slots and no thread is made. What
// a bearer gets without the leader is registered by its slot when it has ended (bearer.h).
//
// Where no slot can be made (a limit on processes, no memory) the main thread leads until one is
// free: it serves control requests, so that what runs can be killed, and refuses executions.
#pragma once

#include <sys/resource.h>

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

/// What is made before it is wanted.
enum Birth : std::uint32_t { kNobody, kComing, kThere };

/// One thread and the execution it carries. Lives in a mapping of its own, next to its stacks,
/// which init shares with a bearer and nobody else.
struct Slot {
  Pool* pool;
  FutexWord thread;   ///< 1 while the thread lives; cleared by the kernel.
  FutexWord entered;  ///< Set when the thread is in its signal scope, or could not enter.
  Failure enter_failure;
  int orders;  ///< An eventfd that says: look at the orders.
  char* child_stack_top;
  char* stack_top;

  // Guarded by the pool's lock.
  bool serving;             ///< The thread leads, carries an execution, or will ask for the lead.
  std::uint32_t sequence;   ///< Of the execution; 0: none.
  bool starting;            ///< Inside vfork.
  std::uint32_t armed;      ///< Of the child that waits for its program, or bears; 0: none does.
  std::uint32_t ordered;    ///< The execution that the orders are for.
  std::uint32_t concluded;  ///< The last execution that its bearer bore.
  bool passed_on;           ///< Its bearer has got a request by way of init.

  Atomic<bool> lingers;       ///< The main process is dead, and the thread waits for the rest.
  std::uint32_t told_to_end;  ///< The execution that orders have ended; the thread's own, as the
  std::uint64_t main_cpu_ns;  ///< next two: what the main process used.
  std::uint64_t main_max_rss;

  // Signals to send, a bit each.
  Atomic<std::uint64_t> main_orders;
  Atomic<std::uint64_t> all_orders;
  // What orphans used that can have been nobody else's.
  Atomic<std::uint64_t> orphan_cpu_ns;
  Atomic<std::uint64_t> orphan_max_rss;
  Atomic<int> pidfd;

  // armed.cc, bearer.cc
  std::uint32_t arming;         ///< The thread is to make, or has made, a child that waits; 0: not.
  bool bears;                   ///< That child is a bearer,
  bool at_once;                 ///< and bears the first before it is wanted.
  FutexWord birth;              ///< A Birth: of that child, or of what it is to bear next.
  FutexWord told;               ///< What that child is told; a bearer: to go on.
  int to_bearer;                ///< Requests for it are sent here,
  int at_bearer;                ///< and it receives them here.
  Atomic<std::uint32_t> given;  ///< The execution that what is borne has received; 0: none.
  Atomic<bool> born;            ///< Behind `pidfd` is a child that the thread does not know of.
  Atomic<bool> told_of;         ///< What is borne has told the thread of itself.
  Atomic<bool> unborn;          ///< For what was given nothing could be borne.
  std::uint64_t prepared_ns;    ///< Written by what is borne.
  Atomic<int> bearer;           ///< A pidfd.
  int bearer_pid;               ///< 0: none.
  Atomic<int> borne_pid;        ///< Of what is borne, from before it has its mark; 0: none.
  bool bearer_killed;           ///< By what the thread has done to end an execution.

  // The request; the thread's own.
  ExecRequest request;
  int fds[kMaxExecFds];
  int fd_count;
  std::uint64_t received_ns;
  WorkloadPlan plan;
  Payload payload;
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
  int orphans;  ///< The children of the main thread, a file of /proc; -1 where there is none.
  int requests_to_main;  ///< An eventfd: a leader is missing, a slot is free, a start hangs.
  std::uint64_t first_mark;
  std::uint64_t unmarked;  ///< Init's own hard RLIMIT_RTTIME.
  std::uint32_t rlimit_count;
  Rlimit rlimits[kMaxRlimits];

  Mutex lock;  // Guards the following, and the executions of the slots.
  bool led;
  bool led_by_main;
  std::uint32_t idle;     ///< Slots waiting for the lead.
  std::uint32_t live;     ///< Executions.
  std::uint32_t waiting;  ///< Armed children that have not become a program, and bearers.
  std::uint32_t slot_count;
  Slot* slots[kMaxSlots];

  Mutex proc_lock;    ///< One walk at a time: `proc_directory` has one position.
  FutexWord baton;    ///< Leads that were passed on and not yet taken.
  FutexWord reaping;  ///< 1 while the main thread reaps: what it has reaped may not be counted yet.
  FutexWord reaped;   ///< Counts the main thread's rounds of reaping.
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

/// requests.cc: reads and answers requests until an execution, or a child to be armed, is
/// registered in `slot`.
void Lead(Slot* slot);
/// requests.cc, main thread only: reads one request; executions are refused with `reason`.
void ServeWithoutSlot(Pool* pool, char* buffer, const Failure& reason);
/// requests.cc
void SendEnd(const InitReply& reply, int fd = -1);
/// requests.cc: the slot's request is that of a message, whose descriptors are the slot's then.
void KeepRequest(Slot* slot, const ExecRequest& request, const Message& message);
/// requests.cc, under the pool's lock: the slot carries the execution of its request from now on.
void RegisterLocked(Slot* slot);
/// requests.cc: to whoever waits for the slot's birth.
void TellBirth(Slot* slot, Birth birth);
/// requests.cc: what is wrong with a request to execute something.
Failure CheckExec(const ExecRequest& request, const Message& message);

/// execution.cc: turns the registered request into the slot's plan.
Failure PrepareWorkload(Slot* slot);

/// execution.cc: from the start of the registered execution to the answer.
void RunExecution(Slot* slot);
/// execution.cc: once the program is there, or could not be: to its end.
/// The answer is the caller's.
void CarryToEnd(Slot* slot, const Failure& failure, InitReply* reply);
/// execution.cc: where the answer is to say that something was left running, says so, and returns
/// with the last answer when nothing is.
void CarryDetached(Slot* slot, InitReply* reply);
/// execution.cc: the answer, with `fd` unless it is negative; from here on the slot carries
/// nothing.
void Conclude(Slot* slot, const InitReply& reply, int fd = -1);
/// execution.cc: the process behind a pidfd is the thread's child; waits for its end.
void Reap(int pidfd, int* status, struct rusage* usage);
/// execution.cc: has a slot's thread look at its orders, and whether it is to carry on.
void Ring(int orders);
/// execution.cc: carries out what Kill requests have left in `main_orders` and `all_orders`.
void ObeyOrders(Slot* slot);

}  // namespace palmshed::child
