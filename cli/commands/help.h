// `palmshed help`.
#pragma once

#include "cli/commands/verb.h"

namespace palmshed::cli {

Action DeclareHelp(CLI::App& app);

inline constexpr Verb kHelpVerb{.name = "help",
                                .operands = "[COMMAND]",
                                .summary = "Explain palmshed or one of its commands",
                                .declare = DeclareHelp};

}  // namespace palmshed::cli
