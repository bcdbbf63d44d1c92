// `palmshed doctor`: what this host can enforce.
#pragma once

#include <array>

#include "cli/commands/verb.h"

namespace palmshed::cli {

Action DeclareDoctor(CLI::App& app);

inline constexpr std::array kDoctorExamples{
    Example{"palmshed doctor", "Tests every control and shows what would enable the missing ones."},
    Example{"palmshed doctor --format json",
            "Prints the capabilities document of the "
            "specification."},
};

inline constexpr Verb kDoctorVerb{
    .name = "doctor",
    .summary = "Test what this host can enforce",
    .description =
        "Tests each control of the sandbox on this host, by doing in a sandbox what it forbids and "
        "what it allows. For each one it shows the mechanism in use and what the test saw; for one "
        "that does not work also what is lost without it and the command that would enable it.\n\n"
        "The exit code is 0 when programs are isolated on this host, 1 when they cannot be.",
    .examples = kDoctorExamples,
    .declare = DeclareDoctor};

}  // namespace palmshed::cli
