// The environment of a program: nothing of it comes from the engine's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "palmshed/options.h"
#include "plan/plan.h"

namespace palmshed::plan {

/// What every sandbox starts from, then the variables of the runtimes found. LANG alone sets the
/// locale: LC_ALL would win over every LC_* that a caller sets.
Env DefaultEnv(const Offer& offer);

/// What a program on a terminal gets below that: the kind that every emulator of today understands.
Env TerminalEnv();

/// `base` with `top` on top, no name twice; a later value replaces an earlier one in its place.
Env Merge(const Env& base, const Env& top);

/// The value of `name`; empty when absent.
std::string_view Lookup(const Env& env, std::string_view name);

/// "NAME=value" for each.
std::vector<std::string> Flatten(const Env& env);

}  // namespace palmshed::plan
