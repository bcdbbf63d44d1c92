// `palmshed version`.
#pragma once

#include "cli/commands/verb.h"

namespace palmshed::cli {

Action DeclareVersion(CLI::App& app);

inline constexpr Verb kVersionVerb{
    .name = "version",
    .summary = "Show the versions of palmshed and of its specification",
    .description = "'palmshed --version' does the same.",
    .declare = DeclareVersion};

}  // namespace palmshed::cli
