// `palmshed completion`.
#pragma once

#include <array>

#include "cli/commands/verb.h"

namespace palmshed::cli {

Action DeclareCompletion(CLI::App& app);

inline constexpr std::array kCompletionExamples{
    Example{"source <(palmshed completion bash)", "Completes palmshed in this bash."},
    Example{"palmshed completion fish > ~/.config/fish/completions/palmshed.fish",
            "Completes palmshed in every new fish."},
};

inline constexpr Verb kCompletionVerb{
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Print a completion script for a shell",
    .description = "An installed palmshed has its completions installed with it.",
    .examples = kCompletionExamples,
    .declare = DeclareCompletion};

}  // namespace palmshed::cli
