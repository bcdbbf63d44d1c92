// What a program sees of time.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include "probe.h"

static void read_clocks(char** unused) {
  (void)unused;
  detail_number("realtimeMs", now_ms(CLOCK_REALTIME));
  detail_number("monotonicMs", now_ms(CLOCK_MONOTONIC));
  detail_number("boottimeMs", now_ms(CLOCK_BOOTTIME));
  detail_number("processCpuMs", now_ms(CLOCK_PROCESS_CPUTIME_ID));
  report(0);
}

static void resolution(char** unused) {
  (void)unused;
  struct timespec step = {0};
  const int result = clock_getres(CLOCK_MONOTONIC, &step);
  detail_number("monotonicNs", step.tv_nsec);
  report(result);
}

static void pause_for(char** milliseconds) {
  const long long before = now_ms(CLOCK_MONOTONIC);
  sleep_ms(number(milliseconds[0]));
  detail_number("monotonicMs", now_ms(CLOCK_MONOTONIC) - before);
  report(0);
}

static void ticks(char** arguments) {
  const long long count = number(arguments[0]), step = number(arguments[1]);
  const long long start = now_ms(CLOCK_MONOTONIC);
  for (long long i = 1; i <= count; ++i) {
    const long long left = start + i * step - now_ms(CLOCK_MONOTONIC);
    if (left > 0) sleep_ms(left);
    detail_number("number", i);
    detail_number("monotonicMs", now_ms(CLOCK_MONOTONIC));
    report(0);
  }
}

static void uptime(char** unused) {
  (void)unused;
  char text[64] = "";
  const ssize_t size = read_file("/proc/uptime", text, sizeof text - 1);
  if (size > 0) detail_number("seconds", strtoll(text, NULL, 10));
  report(size);
}

static void set(char** unused) {
  (void)unused;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  report(syscall(SYS_clock_settime, CLOCK_REALTIME, &now));
}

// The length of a tick, to what it is.
static void adjust(char** unused) {
  (void)unused;
  struct timex state = {.modes = 0};
  (void)syscall(SYS_adjtimex, &state);
  state.modes = ADJ_TICK;
  report(syscall(SYS_adjtimex, &state));
}

static long long now_ns(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void steps(char** milliseconds) {
  long long last = now_ns(), backwards = 0, largest = 0;
  const long long end = last + number(milliseconds[0]) * 1000000;
  while (last < end) {
    const long long now = now_ns();
    backwards += now < last;
    if (now - last > largest) largest = now - last;
    last = now;
  }
  detail_number("backwards", backwards);
  detail_number("largestStepNs", largest);
  report(0);
}

struct attempt attempts[] = {
    {"read", 0, read_clocks}, {"resolution", 0, resolution}, {"sleep", 1, pause_for},
    {"ticks", 2, ticks},      {"uptime", 0, uptime},         {"set", 0, set},
    {"adjust", 0, adjust},    {"steps", 1, steps},           {0}};
