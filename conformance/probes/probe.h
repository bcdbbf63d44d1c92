// What the probes share: the table of attempts, and the line of JSON that each attempt prints.
//
// A probe is one program with one table `attempts`. An attempt does something once and calls one of
// the report functions; detail_* before it add members to the line. Nothing here allocates, so that
// a probe says what came of its attempt under a memory limit too.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { kTheRest = -1 };  // An attempt that takes everything to the end of the command line.

struct attempt {
  const char* name;
  int arguments;  // How many it needs, or kTheRest.
  void (*run)(char** arguments);
  long number, other;  // For tables whose entries differ in numbers.
};

extern struct attempt attempts[];      // Ends with an entry without a name.
extern const struct attempt* current;  // The one that is being made.
extern char** remaining;               // kTheRest: the arguments, ended by NULL.

// ---- The line. result >= 0 is ok; otherwise errno says whether it was denied.
void report(long result);
// As above, under a name of its own (printf): for attempts that print several lines.
void report_as(long result, const char* name, ...) __attribute__((format(printf, 2, 3)));
// Gives the next lines another name.
void rename_line(const char* name);
// Where lines go; 1 unless told otherwise.
void report_on(int fd);
// Refused, whatever errno says.
void report_denied(void);
// The same, the attempt having failed for a reason that shows nothing.
void report_error(const char* why);

// The symbolic name of an errno.
const char* errno_name(int number);

void detail_number(const char* name, long long value);
void detail_flag(const char* name, int value);
void detail_text(const char* name, const char* text);  // NULL prints null.
void detail_bytes(const char* name, const void* bytes, size_t size);
void detail_format(const char* name, const char* format, ...) __attribute__((format(printf, 2, 3)));
void list_begin(const char* name);
void list_number(long long value);
void list_text(const char* text);
void object_begin(const char* name);  // NULL inside a list.
void object_end(void);
void list_end(void);

// ---- Helpers of attempts.
// Calls act(argument) in a child and gives its result and errno; a child that was killed gives -1
// and ECANCELED, and the detail "signal".
long in_child(long (*act)(void*), void* argument);
// A number from the command line; anything else ends the program with status 2.
long long number(const char* text);
void sleep_ms(long long milliseconds);
long long now_ms(int clock);
// Writes all of it; -1 on failure.
int write_all(int fd, const void* bytes, size_t size);
// Reads at most `size` bytes of a file; -1 on failure.
ssize_t read_file(const char* path, void* into, size_t size);
// Reads a descriptor (-1: report as failed), adds "content", reports and closes it.
void report_content(int fd);
// Whether `needle` is in the bytes.
int contains(const void* bytes, size_t size, const char* needle);
// Calls `each` for every process that /proc shows, until it answers non-zero; how many it was
// called for, or -1 when there is no /proc.
int for_each_process(int (*each)(long pid, void* state), void* state);
// Compares texts through pointers, for qsort.
int compare_texts(const void* left, const void* right);
