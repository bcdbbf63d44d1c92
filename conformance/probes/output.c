// Output in exact amounts, and everything that reading and writing of the standard streams may
// show. The flood's bytes are those of numbered lines, so that a missing piece can be told.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"
#include "sha256.h"

enum { kLine = 16, kBlock = 4096 };

// The next `size` bytes of the flood, from byte `from` on.
static void flood_bytes(char* into, long long from, size_t size) {
  char line[24];
  for (size_t at = 0; at < size;) {
    const long long position = from + (long long)at;
    snprintf(line, sizeof line, "%015lld\n", position / kLine);
    const size_t skipped = (size_t)(position % kLine);
    const size_t part = size - at < kLine - skipped ? size - at : kLine - skipped;
    memcpy(into + at, line + skipped, part);
    at += part;
  }
}

static void every_byte(char* into, long long from, size_t size) {
  for (size_t i = 0; i < size; ++i) into[i] = (char)((from + (long long)i) % 256);
}

static void report_sum(long result, long long bytes, struct sha256* hash) {
  const int failure = errno;
  char digest[65];
  sha256_end(hash, digest);
  detail_number("bytes", bytes);
  detail_text("sha256", digest);
  errno = failure;
  report(result);
}

// number: the descriptor; other: which bytes.
static void flood(char** size) {
  static char block[kBlock];
  const long long wanted = number(size[0]);
  const int fd = (int)current->number;
  struct sha256 hash;
  long long written = 0;
  int result = 0;
  sha256_begin(&hash);
  while (written < wanted && result == 0) {
    const size_t part = wanted - written < kBlock ? (size_t)(wanted - written) : kBlock;
    (current->other == 0 ? flood_bytes : every_byte)(block, written, part);
    result = write_all(fd, block, part);
    if (result != 0) break;
    sha256_add(&hash, block, part);
    written += (long long)part;
  }
  report_on(fd == 1 ? 2 : 1);
  report_sum(result, written, &hash);
  report_on(1);
}

static void flood_both(char** size) {
  static char block[kBlock];
  const long long wanted = number(size[0]);
  for (long long written = 0; written < wanted;) {
    const size_t part = wanted - written < kBlock ? (size_t)(wanted - written) : kBlock;
    flood_bytes(block, written, part);
    if (write_all(1, block, part) != 0 || write_all(2, block, part) != 0) return;
    written += (long long)part;
  }
}

static void flood_slowly(char** arguments) {
  const long long count = number(arguments[0]), pause = number(arguments[1]);
  char line[kLine];
  for (long long i = 0; i < count; ++i) {
    if (i > 0) sleep_ms(pause);
    flood_bytes(line, i * kLine, kLine);
    if (write_all(1, line, kLine) != 0) return;
  }
}

static void lines(char** count) {
  const long long wanted = number(count[0]);
  for (long long i = 0; i < wanted; ++i) {
    dprintf(1, "out %lld\n", i);
    dprintf(2, "err %lld\n", i);
  }
}

static void text(char** what) { (void)write_all((int)current->number, what[0], strlen(what[0])); }

static void split_character(char** milliseconds) {
  const long long pause = number(milliseconds[0]);
  (void)write_all(1, "\xe2\x82", 2);
  sleep_ms(pause);
  (void)write_all(1, "\xac", 1);
}

// ---- Input.

// number: whether it is copied to standard output.
static void take_stdin(char** unused) {
  (void)unused;
  static char block[1 << 16];
  struct sha256 hash;
  long long bytes = 0;
  ssize_t size;
  sha256_begin(&hash);
  while ((size = read(0, block, sizeof block)) > 0) {
    sha256_add(&hash, block, (size_t)size);
    bytes += size;
    if (current->number != 0 && write_all(1, block, (size_t)size) != 0) break;
  }
  if (current->number != 0) report_on(2);
  report_sum(size, bytes, &hash);
  report_on(1);
}

static void read_stdin(char** unused) {
  (void)unused;
  char content[200];
  const ssize_t size = read(0, content, sizeof content);
  if (size >= 0) detail_bytes("content", content, (size_t)size);
  detail_number("bytes", size);
  report(size);
}

// ---- The streams themselves.

static void close_outputs(char** milliseconds) {
  const long long how_long = number(milliseconds[0]);
  for (int fd = 0; fd < 3; ++fd) close(fd);
  sleep_ms(how_long);
}

static void reopen(char** unused) {
  (void)unused;
  const int fd = open("/dev/stdout", O_WRONLY | O_CLOEXEC);
  const int result = fd < 0 ? -1 : write_all(fd, "reopened\n", 9);
  report(result);
  if (fd >= 0) close(fd);
}

static void pipe_sizes(char** unused) {
  (void)unused;
  list_begin("sizes");
  for (int fd = 0; fd < 3; ++fd) {
    const int size = fcntl(fd, F_GETPIPE_SZ);
    list_number(size < 0 ? 0 : size);
  }
  list_end();
  report(0);
}

static void broken_pipe(char** unused) {
  (void)unused;
  const pid_t child = fork();
  if (child == 0) {
    int ends[2];
    if (pipe(ends) != 0) _exit(1);
    close(ends[0]);
    (void)!write(ends[1], "x", 1);
    _exit(0);  // SIGPIPE is ignored or blocked.
  }
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  errno = EPIPE;
  report(child > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE ? 0 : -1);
}

static void after_close(char** unused) {
  (void)unused;
  const pid_t child = fork();
  if (child == 0) {
    sleep_ms(200);
    (void)write_all(1, "late\n", 5);
    _exit(0);
  }
  report(child);
}

struct attempt attempts[] = {{"flood-stdout", 1, flood, .number = 1, .other = 0},
                             {"flood-stderr", 1, flood, .number = 2, .other = 0},
                             {"flood-both", 1, flood_both},
                             {"binary-stdout", 1, flood, .number = 1, .other = 1},
                             {"flood-slowly", 2, flood_slowly},
                             {"lines", 1, lines},
                             {"text", 1, text, .number = 1},
                             {"error-text", 1, text, .number = 2},
                             {"split-character", 1, split_character},
                             {"echo", 0, take_stdin, .number = 1},
                             {"count-stdin", 0, take_stdin, .number = 0},
                             {"read-stdin", 0, read_stdin},
                             {"close-outputs", 1, close_outputs},
                             {"reopen", 0, reopen},
                             {"pipe-sizes", 0, pipe_sizes},
                             {"broken-pipe", 0, broken_pipe},
                             {"after-close", 0, after_close},
                             {0}};
