// The groups of system calls that the probe `syscalls` makes, each a table ended by an empty entry.
#pragma once

// What the kernel's complaints of a call mean beside those that are refusals everywhere.
enum {
  kPlain = 0,
  kWrong,     // Its arguments are wrong on purpose: any complaint but a refusal counts as made.
  kUnmapped,  // It asks for an identity: EINVAL means that there is none such here.
};

struct call {
  const char* name;
  long (*make)(void);
  int how;  // One of those below.
};

extern const struct call kernel_calls[];   // Modules, clocks, mounts, devices, limits.
extern const struct call process_calls[];  // Keys, other processes, identity.
extern const struct call ordinary_calls[];
extern const struct call foreign_calls[];  // By another ABI.
