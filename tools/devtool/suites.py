"""The table of suites: what `tools/dev test` runs, in this order."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from devtool.checkout import BUILD, DEFECTS, LOGS, NOT_WITH_THE_REST, PYTHON, jobs, python
from devtool.counting import Counter, by_ctest, by_junit, by_lines, by_unittest, one_check

Command = list[str]


@dataclass(frozen=True)
class Suite:
    name: str
    commands: Callable[[], list[Command]]  # One after another, up to the first that fails.
    count: Counter
    needs: str = ""  # A suite that must have passed, else this one fails unrun.
    for_root: bool = False  # Left out for an ordinary user.
    longest_s: float = 20 * 60  # For one command; a hung suite must not hang the run.
    shown: str = ""  # A pattern; lines of the log that match are printed although all is well.


def junit_of(suite: str) -> str:
    return str(LOGS / f"{suite}.xml")


def configure_and_build(
    preset: str, directory: str = "", *options: str, targets: tuple[str, ...] = ()
) -> list[Command]:
    directory = directory or preset
    where = str(BUILD / directory)
    chosen = ["--target", *targets] if targets else []
    return [
        ["cmake", "--preset", preset, "-B", where, *options],
        ["cmake", "--build", where, *chosen],
    ]


def ctest(suite: str, directory: str, *options: str) -> Command:
    return [
        "ctest",
        "--test-dir",
        str(BUILD / directory),
        "--no-tests=error",
        "--output-on-failure",
        "--timeout",
        "120",
        "--parallel",
        str(jobs()),
        "--output-junit",
        junit_of(suite),
        *options,
    ]


# A test whose own child plays the workload measures the instrumentation, which takes memory and time of
# its own; the tests of whole sandboxes run the same code with workloads that have none. So does one
# whose bound is on how fast our own code is.
MEASURES_ITSELF = (
    r"_NOT_BUILT|(CgroupLeafTest|CgroupAbove|GroupEnforcerTest|ProcessLimitWithoutGroups|TaskClockTest"
    r"|MemoryMeterTest|ProcessMemory|SampledEnforcerTest|TenThousandFilesAreQuick|FastWriters|StayWithinTheQuota"
    r"|LimitsStorm)"
)

# A process of one thread has two under the thread sanitizer, and then can neither make itself the
# first of new namespaces nor start threads after fork.
HAS_ONE_THREAD = r"|ProcessTableTest|DeletedFiles\.ThoseOfAThread"

# UBSan asks by way of a pipe whether an object can be read, and takes one that it cannot ask about for
# broken. And vfork(2) is fork(2) under the thread sanitizer: its child cannot say what it lacked.
TAKES_DESCRIPTORS = r"|TerminalWithoutDescriptors|WhatTheHostHasRunOutOf|FewDescriptors"


def sanitized(preset: str, excluded: str = MEASURES_ITSELF) -> list[Command]:
    """The engine's tests in an instrumented build; the programs around it stay out, and so does what
    only drives the helper, which is a static program and cannot be instrumented."""
    targets = ("engine_test", "kernel_test")
    chosen = ("--tests-regex", r"^(unit|kernel)\.", "--exclude-regex", excluded)
    return [*configure_and_build(preset, targets=targets), ctest(preset, preset, *chosen)]


def clang_build() -> list[Command]:
    compilers = ("-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_CXX_COMPILER=clang++-19")
    return configure_and_build("dev", "clang", *compilers)


def unittests(folder: str, top: str = ".") -> Command:
    return python("unittest", "discover", "-s", folder, "-t", top, "-p", "*_test.py")


def conformance(build: str, junit: str, profile: str, driver: str, *options: str) -> Command:
    places = ["--driver", driver, "--probes", f"{build}/conformance/probes", "--junit", junit]
    run = [PYTHON, "conformance/conformance", "run", "--profile", profile]
    return [*run, *places, *options]


def conformance_here(suite: str, profile: str, driver: str, *options: str) -> Command:
    build = str(BUILD / "dev")
    return conformance(build, junit_of(suite), profile, driver.format(build=build), *options)


def conformance_as_user(suite: str, profile: str, *options: str, below: str = "") -> Command:
    """`below` is a program that runs the kit in other surroundings."""
    command = conformance("{build}", "{junit}", profile, IN_PROCESS, *options)
    prefix = [below] if below else []
    return python("devtool.ordinary_user", "dev", junit_of(suite), *prefix, *command)


IN_PROCESS = "{build}/bin/palmshed_conformance_driver"
ONE_SHOT = "conformance/drivers/palmshed_run.py {build}/bin/palmshed"


def mutants() -> Command:
    build = BUILD / "dev"
    script = "conformance/drivers/cpp/check_mutants.py"
    mutant = str(build / "bin/palmshed_conformance_mutant")
    return [PYTHON, script, mutant, "--probes", str(build / "conformance/probes")]


# A few cases of each kind of wall: in an emulated machine all of them take long.
WITHOUT_WALLS = ("view-host-*", "net-tcp-*", "id-no-*", "clean-ipc", "end-exit-code")


def unconfined(*patterns: str) -> Command:
    """The kit against a driver that isolates nothing, in a machine that is thrown away."""
    only = [word for pattern in patterns for word in ("--only", pattern)]
    probes = str(BUILD / "dev/conformance/probes")
    where = ["--probes", probes, "--reports", str(LOGS / "unconfined")]
    return [PYTHON, "tests/vm/conformance.py", "unconfined", *where, *only]


def other_hosts(suite: str, *options: str) -> Command:
    """The engine on kinds of host that this machine is not, in machines that are thrown away."""
    return [PYTHON, "tests/vm/hosts.py", "--reports", str(LOGS / suite), *options]


def production(*options: str) -> Command:
    return python("devtool.production", "release", *options)


# In the run of every day: a tenth of that, and a hundredth.
ENDURANCE = ("env", "PALMSHED_LOOPS=20000", "PALMSHED_KILLS=10000")


def endurance(suite: str) -> Command:
    return [*ENDURANCE, str(BUILD / "dev/bin/endurance_test"), f"--gtest_output=xml:{junit_of(suite)}"]


def endurance_as_user(suite: str) -> Command:
    run = ["{build}/bin/endurance_test", "--gtest_output=xml:{junit}"]
    return python("devtool.ordinary_user", "dev", junit_of(suite), *ENDURANCE, *run)


INSTALLED = ("palmshed", "palmshed_engine", "palmshed_reference_files")

# And the benchmarks; that the tests compile so, too, is seen in the long run.
RELEASED = (
    *INSTALLED,
    "palmshed_latency",
    "palmshed_measure",
    "palmshed_engine_death",
    "palmshed_cgroup_attach",
)

# In the run of every day: a sample of them.
EVERY_STEP = ("env", "PALMSHED_FAULTS=all")


def every_step(suite: str) -> Command:
    return [*EVERY_STEP, str(BUILD / "dev/bin/faults_test"), f"--gtest_output=xml:{junit_of(suite)}"]


def every_step_as_user(suite: str) -> Command:
    run = ["{build}/bin/faults_test", "--gtest_output=xml:{junit}"]
    return python("devtool.ordinary_user", "dev", junit_of(suite), *EVERY_STEP, *run)


def defects_as_user(suite: str) -> Command:
    run = ["ctest", "--test-dir", "{build}", "--no-tests=error", "--output-on-failure"]
    run += ["--tests-regex", DEFECTS, "--parallel", str(jobs()), "--output-junit", "{junit}"]
    return python("devtool.ordinary_user", "dev", junit_of(suite), *run)


def api_reference() -> Command:
    return python("lint.api_docs", "engine/include/palmshed", str(BUILD / "docs"))


def kit_suite(name: str, command: Callable[[str], Command]) -> Suite:
    return Suite(name, lambda: [command(name)], by_junit, needs="build", for_root=True)


def conformance_of_user(name: str) -> Suite:
    return kit_suite(name, lambda name: conformance_as_user(name, "user"))


def conformance_suites(prefix: str, *options: str) -> list[Suite]:
    """The other kinds of host, and the other driver."""
    below = "{build}/bin/without_namespaces"
    return [
        kit_suite(
            f"{prefix}-root",
            lambda name: conformance_here(name, "root", IN_PROCESS, *options),
        ),
        kit_suite(
            f"{prefix}-filtered",
            lambda name: conformance_as_user(name, "user-filtered", *options, below=below),
        ),
        kit_suite(
            f"{prefix}-one-shot",
            lambda name: conformance_here(name, "root-one-shot", ONE_SHOT, *options),
        ),
    ]


SUITES: tuple[Suite, ...] = (
    Suite("tools", lambda: [unittests("tools", "tools")], by_unittest),
    Suite("schemas", lambda: [unittests("tests/spec", "tests/spec")], by_unittest),
    Suite("layers", lambda: [python("lint.layers")], one_check),
    Suite("sizes", lambda: [python("lint.sizes")], one_check),
    Suite("formatting", lambda: [python("lint.formatting")], one_check),
    Suite("documents", lambda: [python("lint.doc_links")], one_check),
    Suite("document-code", lambda: [python("lint.doc_code")], one_check),
    Suite("error-pages", lambda: [python("lint.error_pages")], one_check),
    Suite("api-reference", lambda: [api_reference()], one_check),
    Suite("build", lambda: configure_and_build("dev"), one_check),
    Suite("child-symbols", lambda: [python("devtool.helper", "dev")], one_check, needs="build"),
    Suite(
        "tests",
        lambda: [ctest("tests", "dev", "--exclude-regex", NOT_WITH_THE_REST)],
        by_ctest,
        needs="build",
    ),
    Suite(
        "tests-ordinary-user",
        lambda: [python("devtool.ordinary_user", "dev", junit_of("tests-ordinary-user"))],
        by_ctest,
        needs="build",
        for_root=True,
    ),
    Suite("kit", lambda: [unittests("conformance/tests", "conformance")], by_unittest),
    Suite("kit-rules", lambda: [[PYTHON, "conformance/conformance", "lint"]], one_check),
    *conformance_suites("conformance", "--smoke"),
    conformance_of_user("conformance-user"),
    Suite("mutants", lambda: [mutants()], one_check, needs="build"),
    Suite(
        "vm",
        lambda: [[PYTHON, "tests/vm/guest.py", "fetch"], unittests("tests/vm", "tests/vm")],
        by_unittest,
        needs="build",
    ),
    Suite("hosts", lambda: [other_hosts("hosts")], by_lines, needs="build"),
    Suite("unconfined", lambda: [unconfined(*WITHOUT_WALLS)], by_lines, needs="build"),
    Suite(
        "asan-ubsan",
        lambda: sanitized("asan-ubsan", MEASURES_ITSELF + TAKES_DESCRIPTORS),
        by_ctest,
    ),
    Suite("fuzz", lambda: [python("devtool.fuzz", "--seconds", "20")], by_lines, needs="asan-ubsan"),
    Suite(
        "tsan",
        lambda: sanitized("tsan", MEASURES_ITSELF + HAS_ONE_THREAD + TAKES_DESCRIPTORS),
        by_ctest,
    ),
    Suite("release", lambda: configure_and_build("release", targets=RELEASED), one_check),
    Suite(
        "benchmark",
        lambda: [python("devtool.benchmark_smoke")],
        one_check,
        needs="release",
        shown=r"^( {24}p10|\d+ ms idle|vfork\+exec|bubblewrap {5}|palmshed run|exec|not judged|over the limit|no ratio)",
    ),
    Suite("package", lambda: [python("devtool.package", "release")], by_lines, needs="release"),
    Suite("production-parts", lambda: [unittests("production/tests", "production")], by_unittest),
    Suite("production", lambda: [production()], by_lines, needs="release"),
)

# `test --long`: in whole what the others look at in part.
LONG: tuple[Suite, ...] = (
    Suite("build", lambda: configure_and_build("dev"), one_check),
    # Of the engine and its tests the sanitizers' builds are by Clang each time.
    Suite("clang", clang_build, one_check),
    *conformance_suites("whole"),
    conformance_of_user("whole-user"),
    Suite(
        "whole-hosts",
        lambda: [other_hosts("whole-hosts", "--whole")],
        by_lines,
        needs="build",
        longest_s=2 * 60 * 60,
    ),
    Suite("whole-unconfined", lambda: [unconfined()], by_lines, needs="build"),
    Suite(
        "endurance",
        lambda: [endurance("endurance")],
        by_junit,
        needs="build",
        longest_s=2 * 60 * 60,
    ),
    Suite(
        "endurance-ordinary-user",
        lambda: [endurance_as_user("endurance-ordinary-user")],
        by_junit,
        needs="build",
        for_root=True,
        longest_s=2 * 60 * 60,
    ),
    Suite(
        "faults",
        lambda: [every_step("faults")],
        by_junit,
        needs="build",
        longest_s=8 * 60 * 60,
    ),
    Suite(
        "faults-ordinary-user",
        lambda: [every_step_as_user("faults-ordinary-user")],
        by_junit,
        needs="build",
        for_root=True,
        longest_s=8 * 60 * 60,
    ),
    Suite(
        "defects-ordinary-user",
        lambda: [defects_as_user("defects-ordinary-user")],
        by_ctest,
        needs="build",
        for_root=True,
    ),
    Suite("release", lambda: configure_and_build("release"), one_check),
    Suite("production-full", lambda: [production("--full")], by_lines, needs="release"),
    Suite("fuzz-long", lambda: [python("devtool.fuzz", "--seconds", "600")], by_lines, longest_s=60 * 60),
    Suite("tidy-all", lambda: [python("devtool.tidy", "--all")], one_check, needs="build"),
)

LINTS = (
    "layers",
    "sizes",
    "formatting",
    "documents",
    "document-code",
    "error-pages",
    "api-reference",
    "kit-rules",
    "build",
    "child-symbols",
)


def applicable(suites: tuple[Suite, ...]) -> list[Suite]:
    return [suite for suite in suites if os.geteuid() == 0 or not suite.for_root]
