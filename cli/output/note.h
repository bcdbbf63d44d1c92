// The program's own words. They go to standard error, one line each, so that they can be told from
// the sandboxed program's output.
#pragma once

#include <string>
#include <string_view>

#include "palmshed/error.h"

namespace palmshed::cli {

/// `text` as one line: control characters become '?', so that no name can forge or hide a line.
std::string OneLine(std::string_view text);

/// A failure in one sentence with its remedy.
std::string Describe(const Error& error);

/// Writes "palmshed: <text>" and a newline with one write(2).
void Note(std::string_view text);

/// Writes all of `text` to standard output; false when that failed, which has been said then.
[[nodiscard]] bool Print(std::string_view text);

/// E.g. "No such file or directory (ENOENT)".
std::string NameErrno(int sys_errno);

}  // namespace palmshed::cli
