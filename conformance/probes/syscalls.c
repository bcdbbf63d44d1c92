// Every system call of a table, each in a child of its own: a filter may kill who makes it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "probe.h"

static const struct call* const kTables[] = {kernel_calls, process_calls, ordinary_calls,
                                             foreign_calls};
enum { kTableCount = sizeof kTables / sizeof *kTables, kMostAttempts = 256 };

static long make_it(void* state) {
  (void)setsid();  // No terminal that a call could reach by being ours.
  return ((const struct call*)state)->make();
}

static void make(const struct call* call) {
  const long result = in_child(make_it, (void*)(uintptr_t)call);
  const int refused = errno == EPERM || errno == EACCES || errno == ENOSYS || errno == ESRCH ||
                      errno == ECANCELED || errno == EOPNOTSUPP;
  rename_line(call->name);
  if (result < 0 && call->how == kWrong && !refused) {
    detail_text("complaint", errno_name(errno));
    report(0);
  } else if (result < 0 && call->how == kUnmapped && errno == EINVAL) {
    report_denied();
  } else {
    report(result);
  }
}

static void one(char** unused) {
  (void)unused;
  make(kTables[current->number] + current->other);
}

static void every(char** unused) {
  (void)unused;
  for (int table = 0; table < kTableCount; ++table) {
    for (const struct call* at = kTables[table]; at->name != NULL; ++at) make(at);
  }
}

struct attempt attempts[kMostAttempts] = {{"every", 0, every}};

// An attempt for each call.
__attribute__((constructor)) static void list_calls(void) {
  struct attempt* next = attempts + 1;
  for (int table = 0; table < kTableCount; ++table) {
    for (int i = 0; kTables[table][i].name != NULL; ++i, ++next) {
      if (next == attempts + kMostAttempts - 1) abort();
      *next = (struct attempt){kTables[table][i].name, 0, one, .number = table, .other = i};
    }
  }
}
