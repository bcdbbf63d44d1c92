// The line is put together in a buffer of fixed size, which no attempt comes near, and written at
// once, so that lines of several processes do not mix.
#include "line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "errno_names.h"
#include "probe.h"

enum { kMostDetails = 1 << 18, kMostHead = 1 << 16 };

static const char* line_attempt;
static char** line_arguments;
static int line_count;
static int line_fd = 1;

struct text {
  char* bytes;
  size_t size, room;
};
static char head_bytes[kMostHead], detail_storage[kMostDetails];
static struct text details = {.bytes = detail_storage, .room = kMostDetails};
static int first_in_list;  // No comma before the next element.

static void put(struct text* to, const char* bytes, size_t size) {
  if (size > to->room - to->size) return;
  memcpy(to->bytes + to->size, bytes, size);
  to->size += size;
}

static void put_text(struct text* to, const char* text) { put(to, text, strlen(text)); }

// The length of the UTF-8 character that begins here, 0 when none does.
static size_t character(const unsigned char* at, size_t left) {
  const size_t size = at[0] < 0x80                    ? 1
                      : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                      : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
                      : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                      : 0;
  if (size > left) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  if (size == 3 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f))) return 0;
  if (size == 4 && ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))) return 0;
  return size;
}

// Bytes that are not UTF-8 are written as the characters of the same number.
static void put_quoted(struct text* to, const void* bytes, size_t size) {
  const unsigned char* at = bytes;
  put_text(to, "\"");
  for (size_t i = 0; i < size;) {
    const size_t length = character(at + i, size - i);
    char escape[8];
    if (length == 0 || at[i] < 0x20 || at[i] == 0x7f) {
      snprintf(escape, sizeof escape, "\\u%04x", at[i++]);
      put_text(to, escape);
      continue;
    }
    if (at[i] == '"' || at[i] == '\\') put_text(to, "\\");
    put(to, (const char*)at + i, length);
    i += length;
  }
  put_text(to, "\"");
}

void line_begin(const char* attempt, char** arguments, int count) {
  line_attempt = attempt;
  line_arguments = arguments;
  line_count = count;
  details.size = 0;
}

void rename_line(const char* name) { line_attempt = name; }

void report_on(int fd) { line_fd = fd; }

const char* errno_name(int number) {
  for (size_t i = 0; i < sizeof kErrnoNames / sizeof *kErrnoNames; ++i) {
    if (kErrnoNames[i].number == number) return kErrnoNames[i].name;
  }
  return "?";
}

static void print_line(const char* name, const char* result, int failure) {
  struct text line = {.bytes = head_bytes, .room = kMostHead};
  put_text(&line, "{\"attempt\": ");
  put_quoted(&line, name, strlen(name));
  put_text(&line, ", \"args\": [");
  for (int i = 0; i < line_count; ++i) {
    if (i > 0) put_text(&line, ", ");
    put_quoted(&line, line_arguments[i], strnlen(line_arguments[i], 200));
  }
  put_text(&line, "], \"result\": \"");
  put_text(&line, result);
  put_text(&line, failure == 0 ? "\", \"errno\": null" : "\", \"errno\": \"");
  if (failure != 0) put_text(&line, errno_name(failure));
  if (failure != 0) put_text(&line, "\"");
  static char whole[kMostHead + kMostDetails + 4];
  memcpy(whole, line.bytes, line.size);
  memcpy(whole + line.size, details.bytes, details.size);
  memcpy(whole + line.size + details.size, "}\n", 2);
  (void)write_all(line_fd, whole, line.size + details.size + 2);
  details.size = 0;
}

// Refused, or nothing there: what an attempt shows that could not be made here.
static int is_denial(int failure) {
  static const int kDenials[] = {
      EPERM,        EACCES,       ENOENT,          ENOSYS,          EROFS,  EAFNOSUPPORT,
      EPFNOSUPPORT, EOPNOTSUPP,   EPROTONOSUPPORT, ESOCKTNOSUPPORT, ESRCH,  ECONNREFUSED,
      ENETUNREACH,  EHOSTUNREACH, ENETDOWN,        EADDRNOTAVAIL,   ENXIO,  ENODEV,
      ELOOP,        EXDEV,        ENOTDIR,         ENOSPC,          EUSERS, EDQUOT,
      ETIMEDOUT,    ECONNRESET,   ECONNABORTED,    ENOTCONN,        EFBIG,  EAGAIN,
      ENOMEM,       EMFILE,       ENFILE,          EBADF,           ENOTTY, ETXTBSY,
      ECANCELED,    EHOSTDOWN};
  for (size_t i = 0; i < sizeof kDenials / sizeof *kDenials; ++i) {
    if (kDenials[i] == failure) return 1;
  }
  return 0;
}

void report_as(long result, const char* name, ...) {
  const int failure = result < 0 ? errno : 0;
  char text[256];
  va_list arguments;
  va_start(arguments, name);
  vsnprintf(text, sizeof text, name, arguments);
  va_end(arguments);
  print_line(text, result >= 0 ? "ok" : is_denial(failure) ? "denied" : "error", failure);
}

void report(long result) { report_as(result, "%s", line_attempt); }

void report_denied(void) { print_line(line_attempt, "denied", errno); }

void report_error(const char* why) {
  const int failure = errno;
  detail_text("why", why);
  print_line(line_attempt, "error", failure);
}

static void member(const char* name) {
  if (!first_in_list) put_text(&details, ", ");
  first_in_list = 0;
  if (name == NULL) return;
  put_quoted(&details, name, strlen(name));
  put_text(&details, ": ");
}

void detail_bytes(const char* name, const void* bytes, size_t size) {
  member(name);
  put_quoted(&details, bytes, size);
}

void detail_text(const char* name, const char* text) {
  if (text != NULL) {
    detail_bytes(name, text, strlen(text));
    return;
  }
  member(name);
  put_text(&details, "null");
}

void detail_number(const char* name, long long value) {
  char text[24];
  snprintf(text, sizeof text, "%lld", value);
  member(name);
  put_text(&details, text);
}

void detail_flag(const char* name, int value) {
  member(name);
  put_text(&details, value ? "true" : "false");
}

void detail_format(const char* name, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  detail_text(name, text);
}

void list_begin(const char* name) {
  member(name);
  put_text(&details, "[");
  first_in_list = 1;
}
void list_number(long long value) { detail_number(NULL, value); }
void list_text(const char* text) { detail_text(NULL, text); }
void list_end(void) {
  put_text(&details, "]");
  first_in_list = 0;
}
void object_begin(const char* name) {
  member(name);
  put_text(&details, "{");
  first_in_list = 1;
}
void object_end(void) {
  put_text(&details, "}");
  first_in_list = 0;
}
