// Files that take room without a name in a directory, and many at once; bounded by the command
// line.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files.h"
#include "probe.h"

enum { kBlock = 1 << 16, kMostWriters = 64 };

// Writes so many bytes; how many it were. A limit shows as EFBIG, not as a signal.
static long long fill(int fd, long long size) {
  static char block[kBlock];
  long long written = 0;
  signal(SIGXFSZ, SIG_IGN);
  while (written < size) {
    const long long left = size - written;
    const ssize_t part = write(fd, block, left < kBlock ? (size_t)left : kBlock);
    if (part <= 0) break;
    written += part;
  }
  return written;
}

// Fills the file, says so, and keeps it open for a while.
static void fill_and_hold(int fd, char** arguments) {
  const long long size = number(arguments[0]), hold = number(arguments[1]);
  if (fd < 0) {
    report_error("no file could be made");
    return;
  }
  const long long written = fill(fd, size);
  const int failure = errno;
  detail_number("written", written);
  errno = failure;
  report(written == size ? 0 : -1);
  sleep_ms(hold);
  close(fd);
}

void fill_deleted(char** arguments) {
  const int fd = open(arguments[0], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0) unlink(arguments[0]);
  fill_and_hold(fd, arguments + 1);
}

void fill_unnamed(char** arguments) {
  fill_and_hold(open(arguments[0], O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600), arguments + 1);
}

// As many processes as files, all at once; the files stay.
void fill_at_once(char** arguments) {
  const long long count = number(arguments[1]), size = number(arguments[2]);
  char path[kPathSize];
  long long made = 0, filled = 0;
  for (; made < count && made < kMostWriters; ++made) {
    const pid_t writer = fork();
    if (writer < 0) break;
    if (writer > 0) continue;
    snprintf(path, sizeof path, "%s/palmshed-probe-%lld", arguments[0], made);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    _exit(fd >= 0 && fill(fd, size) == size ? 0 : 1);
  }
  for (int status; wait(&status) > 0;) filled += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  detail_number("filled", filled);
  errno = EDQUOT;
  report(filled == count ? 0 : -1);
}

// Empty files, which stay.
void keep_many(char** arguments) {
  const long long wanted = number(arguments[1]);
  char path[kPathSize];
  long long made = 0;
  int failure = 0;
  while (made < wanted && failure == 0) {
    snprintf(path, sizeof path, "%s/palmshed-probe-%lld", arguments[0], made);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    failure = fd < 0 ? errno : 0;
    if (fd >= 0) ++made, close(fd);
  }
  detail_number("made", made);
  errno = failure;
  report(failure == 0 ? 0 : -1);
}
