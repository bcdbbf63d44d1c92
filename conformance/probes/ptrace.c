// Debugging: one's own children, which must work, and others, which must not.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

static volatile long secret = 0x5eed;

static void end(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

static void traced_child(char** unused) {
  (void)unused;
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(errno);
    (void)raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    report_error("no child");
    return;
  }
  if (!WIFSTOPPED(status)) {
    errno = WEXITSTATUS(status);
    report(-1);
    return;
  }
  long seen = 0;  // The raw call writes what it read.
  const long result = syscall(SYS_ptrace, (long)PTRACE_PEEKDATA, child, &secret, &seen);
  if (result == 0 && seen != secret) errno = EIO;
  report(result == 0 && seen == secret ? 0 : -1);
  (void)ptrace(PTRACE_CONT, child, NULL, NULL);
  end(child);
}

static pid_t sleeping_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    sleep_ms(10000);
    _exit(0);
  }
  return child;
}

static void seize_child(char** unused) {
  (void)unused;
  const pid_t child = sleeping_child();
  report(ptrace(PTRACE_SEIZE, child, NULL, NULL));
  end(child);
}

static void read_child_memory(char** unused) {
  (void)unused;
  const pid_t child = sleeping_child();
  long seen = 0;
  const struct iovec here = {&seen, sizeof seen},
                     there = {(void*)(uintptr_t)&secret, sizeof secret};
  const long size = syscall(SYS_process_vm_readv, child, &here, 1L, &there, 1L, 0L);
  if (size >= 0 && seen != secret) errno = EIO;
  report(size == sizeof seen && seen == secret ? 0 : -1);
  end(child);
}

static void seize(char** pid) {
  const pid_t other = (pid_t)number(pid[0]);
  const long result = ptrace(PTRACE_SEIZE, other, NULL, NULL);
  report(result);
  if (result == 0) (void)ptrace(PTRACE_INTERRUPT, other, NULL, NULL);
  if (result == 0) (void)waitpid(other, NULL, __WALL);
  if (result == 0) (void)ptrace(PTRACE_DETACH, other, NULL, NULL);
}

static void attach(char** pid) {
  const pid_t other = (pid_t)number(pid[0]);
  const long result = ptrace(PTRACE_ATTACH, other, NULL, NULL);
  report(result);
  if (result == 0) (void)waitpid(other, NULL, __WALL);
  if (result == 0) (void)ptrace(PTRACE_DETACH, other, NULL, NULL);
}

// At an address that is not mapped: whoever may hears EFAULT.
static void touch_memory(char** pid) {
  char byte = 0;
  const struct iovec here = {&byte, 1}, there = {(void*)16, 1};
  const long result = syscall(current->number, number(pid[0]), &here, 1L, &there, 1L, 0L);
  const int reached = result < 0 && errno == EFAULT;
  if (reached) detail_text("complaint", "EFAULT");
  report(reached ? 0 : result);
}

static void take_descriptor(char** pid) {
  const long fd = syscall(SYS_pidfd_open, number(pid[0]), 0L);
  const long taken = fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 0L, 0L);
  report(taken);
  if (taken >= 0) close((int)taken);
  if (fd >= 0) close((int)fd);
}

static void compare(char** pid) {
  report(syscall(SYS_kcmp, (long)getpid(), number(pid[0]), 2L /* files */, 0L, 0L));
}

struct attempt attempts[] = {{"child", 0, traced_child},
                             {"seize-child", 0, seize_child},
                             {"read-child-memory", 0, read_child_memory},
                             {"seize", 1, seize},
                             {"attach", 1, attach},
                             {"read-memory", 1, touch_memory, .number = SYS_process_vm_readv},
                             {"write-memory", 1, touch_memory, .number = SYS_process_vm_writev},
                             {"take-descriptor", 1, take_descriptor},
                             {"compare", 1, compare},
                             {0}};
