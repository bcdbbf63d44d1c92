"""The table of suites: what `tools/dev test` runs, in this order."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from devtool.checkout import BUILD, LOGS, jobs, python
from devtool.counting import Counter, by_ctest, by_lines, by_unittest, one_check

Command = list[str]


@dataclass(frozen=True)
class Suite:
    name: str
    commands: Callable[[], list[Command]]  # One after another, up to the first that fails.
    count: Counter
    needs: str = ""  # A suite that must have passed, else this one fails unrun.
    for_root: bool = False  # Left out for an ordinary user.


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
        "--parallel",
        str(jobs()),
        "--output-junit",
        junit_of(suite),
        *options,
    ]


def sanitized(preset: str) -> list[Command]:
    """The engine's tests in an instrumented build; the programs around it stay out."""
    targets = ("engine_test", "kernel_test", "helper_test")
    chosen = ("--tests-regex", r"^(unit|kernel)\.", "--exclude-regex", "_NOT_BUILT")
    return [*configure_and_build(preset, targets=targets), ctest(preset, preset, *chosen)]


def clang_build() -> list[Command]:
    compilers = ("-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_CXX_COMPILER=clang++-19")
    return configure_and_build("dev", "clang", *compilers)


def unittests(folder: str, top: str = ".") -> Command:
    return python("unittest", "discover", "-s", folder, "-t", top, "-p", "*_test.py")


def api_reference() -> Command:
    return python("lint.api_docs", "engine/include/palmshed", str(BUILD / "docs"))


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
    Suite("tests", lambda: [ctest("tests", "dev")], by_ctest, needs="build"),
    Suite(
        "tests-ordinary-user",
        lambda: [python("devtool.ordinary_user", "dev", junit_of("tests-ordinary-user"))],
        by_ctest,
        needs="build",
        for_root=True,
    ),
    Suite("clang", clang_build, one_check),
    Suite("tidy", lambda: [python("devtool.tidy", "--rooms")], one_check, needs="build"),
    Suite("asan-ubsan", lambda: sanitized("asan-ubsan"), by_ctest),
    Suite("tsan", lambda: sanitized("tsan"), by_ctest),
    Suite("release", lambda: configure_and_build("release"), one_check),
    Suite("package", lambda: [python("devtool.package", "release")], by_lines, needs="release"),
)

LINTS = (
    "layers",
    "sizes",
    "formatting",
    "documents",
    "document-code",
    "error-pages",
    "api-reference",
    "build",
    "child-symbols",
)


def applicable() -> list[Suite]:
    return [suite for suite in SUITES if os.geteuid() == 0 or not suite.for_root]
