// `palmshed run`: one program in a fresh sandbox, in this process.
#pragma once

#include <array>

#include "cli/commands/verb.h"

namespace palmshed::cli {

Action DeclareRun(CLI::App& app);

inline constexpr std::array kRunExamples{
    Example{"palmshed run -- echo hello",
            "Runs echo where it sees nothing of this machine but its "
            "system programs."},
    Example{"palmshed run --copy solve.py --timeout 10s -- python3 solve.py",
            "Copies a file in and runs it for at most ten seconds."},
    Example{"palmshed run -m 256m --cpu-time 5s --copy a.py -- python3 a.py",
            "Holds it to 256 MiB of memory and five seconds of CPU time."},
    Example{"palmshed run -i -- wc -l < notes.txt", "Feeds standard input to the program."},
    Example{"palmshed run -it -- bash", "An interactive shell, as over ssh."},
    Example{"palmshed run --copy . -- sh -c 'make && make test'",
            "Builds a copy of the current directory; sh is the program here."},
    Example{"palmshed run --json result.json -- ./job",
            "Keeps the result document, which tells exit code, signal and limits apart."},
};

inline constexpr Verb kRunVerb{
    .name = "run",
    .operands = "[--] PROGRAM [ARGUMENT...]",
    .summary = "Run one program in a fresh sandbox",
    .description =
        "Makes a sandbox, runs PROGRAM in it and removes it again. Inside, the working directory "
        "is an empty workspace; the system's programs can be read, the network, other processes "
        "and the files of this machine cannot be reached. No shell is involved and no daemon "
        "runs.\n\n"
        "What the program writes comes out as it is written, byte for byte. What palmshed itself "
        "has to say goes to standard error, one line each, beginning with 'palmshed: '. Without "
        "-i the program's standard input is empty and ours is not read.\n\n"
        "With -t the program has a terminal: what it writes to standard error comes out on "
        "standard "
        "output, lines end with carriage return and line feed, and TERM is ours. With -it our own "
        "terminal turns raw until the program ends, and gets its modes back however that comes "
        "about. A change of its size reaches the program.\n\n"
        "SIGINT, SIGTERM and SIGHUP cancel the program: SIGTERM to all of its processes, SIGKILL "
        "after one second. A second signal ends everything at once. If the reader of the output "
        "goes away, the program is cancelled and the exit code is 141, as with any program in a "
        "pipeline.\n\n"
        "A limit that this host cannot enforce is refused before anything runs, unless --degraded "
        "names it.",
    .examples = kRunExamples,
    .takes_program = true,
    .declare = DeclareRun};

}  // namespace palmshed::cli
