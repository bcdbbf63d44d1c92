"""The verbs of tools/dev."""

import argparse
import os

from devtool import benchmark, fuzz, scratch, tidy
from devtool.checkout import BUILD, ROOT, TOOLS, python, run
from devtool.packages import setup
from devtool.runner import run_suites
from devtool.suites import INSTALLED, LINTS, LONG, SUITES, api_reference, applicable, configure_and_build
from devtool.versions import library_problems, spec_problems, tag_of_head

# Set for what runs with a file system of the tests' own.
APART = "PALMSHED_TESTS_APART"
DEMONSTRATION = ("run", "--", "python3", "-c", "print(6 * 7)")


def build(preset: str, *targets: str) -> int:
    for command in configure_and_build(preset, targets=targets):
        status = run(*command)
        if status:
            return status
    return 0


def build_and_run() -> int:
    """From nothing to a program's output out of a sandbox."""
    status = setup() or build("release", *INSTALLED)
    if status:
        return status
    command = [str(BUILD / "release/bin/palmshed"), *DEMONSTRATION]
    print("$", " ".join(command), flush=True)
    return run(*command)


def test(names: list[str], long: bool) -> int:
    all_suites = LONG if long else SUITES
    unknown = set(names) - {suite.name for suite in all_suites}
    if unknown:
        print("no such suite:", ", ".join(sorted(unknown)))
        return 2
    status = setup()
    if status:
        return status
    if os.geteuid() == 0 and not os.environ.get(APART):
        (BUILD / "scratch").mkdir(parents=True, exist_ok=True)
        again = ["env", f"{APART}=1", str(TOOLS / "dev"), "test", *names, *(["--long"] if long else [])]
        status = run(*scratch.within(again, ROOT, BUILD))
        if status != scratch.UNAVAILABLE:
            return status
        print("the tests have no file system of their own: it could not be mounted")
    suites = [suite for suite in applicable(all_suites) if not names or suite.name in names]
    for suite in all_suites:
        if suite.for_root and os.geteuid() != 0:
            print(f"{suite.name}: left out, needs root")
    return run_suites(suites)


def guarantee(case: str, profile: str | None) -> int:
    """Runs one case of the conformance kit alone against the engine, and tells all of it."""
    driver = "palmshed_conformance_driver"
    for command in configure_and_build("dev", targets=(driver, "palmshed_conformance_probes")):
        if run(*command):
            return 2
    words = [str(ROOT / "conformance/conformance"), "prove", case]
    words += ["--driver", str(BUILD / "dev/bin" / driver)]
    words += ["--probes", str(BUILD / "dev/conformance/probes")]
    return run(*words, *(["--profile", profile] if profile else []))


def release_gate(full: bool) -> int:
    """Everything that has to agree, and to work, before a version is given away."""
    tag = tag_of_head(ROOT)
    print(f"the tag is v{tag}" if tag else "nothing is tagged here: a rehearsal", flush=True)
    problems = spec_problems(ROOT) + library_problems(ROOT, tag)
    for problem in problems:
        print(f"not ok {problem}", flush=True)
    if problems or setup() or build("release"):
        return 1
    options = ["--full"] if full else []
    checks = [python("devtool.package", "release"), python("devtool.production", "release", *options)]
    return 1 if any([run(*check) for check in checks]) else 0


def lint(fix: bool) -> int:
    if fix:
        return run(*python("lint.formatting", "--fix"))
    return run_suites([suite for suite in SUITES if suite.name in LINTS])


def docs() -> int:
    status = run(*api_reference())
    print("written to", (BUILD / "docs/api/index.md").relative_to(ROOT))
    return status


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="tools/dev", description="Everything a developer does here.")
    verbs = top.add_subparsers(dest="verb", required=True)
    verbs.add_parser("setup", help="install the packages that are missing")
    builds = verbs.add_parser("build", help="configure and build a preset")
    builds.add_argument("preset", nargs="?", default="dev")
    verbs.add_parser("run", help="set up, build and run a program in a sandbox")
    tests = verbs.add_parser("test", help="run every suite, or those named")
    tests.add_argument("suite", nargs="*", help="names of suites; see --list")
    tests.add_argument("--list", action="store_true", help="print the names of the suites")
    tests.add_argument("--long", action="store_true", help="run the long suites instead")
    guarantees = verbs.add_parser(
        "guarantee", help="run one conformance case alone, and tell what it expects and sees"
    )
    guarantees.add_argument("case", help="a case, or all those of a rule, such as FS-101")
    guarantees.add_argument("--profile", help="what the host must give; root or user where absent")
    gates = verbs.add_parser(
        "release-gate", help="hold versions, package and production scenarios to a release"
    )
    gates.add_argument("--full", action="store_true", help="the long figures of the scenarios")
    lints = verbs.add_parser("lint", help="run the checks of the sources and documents")
    lints.add_argument("--fix", action="store_true", help="format instead of checking")
    tidies = verbs.add_parser("tidy", help="run clang-tidy on what has changed")
    tidy.add_arguments(tidies)
    benchmarks = verbs.add_parser("benchmark", help="measure, and write a page about it")
    benchmark.add_arguments(benchmarks)
    fuzzes = verbs.add_parser("fuzz", help="run the fuzzers")
    fuzz.add_arguments(fuzzes)
    verbs.add_parser("docs", help="write the API reference")
    return top


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.verb == "setup":
        return setup()
    if options.verb == "build":
        return build(options.preset)
    if options.verb == "run":
        return build_and_run()
    if options.verb == "test" and options.list:
        print("\n".join(suite.name for suite in (LONG if options.long else SUITES)))
        return 0
    if options.verb == "test":
        return test(options.suite, options.long)
    if options.verb == "release-gate":
        return release_gate(options.full)
    if options.verb == "guarantee":
        return guarantee(options.case, options.profile)
    if options.verb == "lint":
        return lint(options.fix)
    if options.verb == "tidy":
        return tidy.tidy(options)
    if options.verb == "benchmark":
        return benchmark.benchmark(options)
    if options.verb == "fuzz":
        return fuzz.fuzz(options.fuzzer, options.seconds)
    return docs()
