"""Installs a build, moves it elsewhere, and uses it as a stranger would. Prints "ok"/"not ok" lines.

Usage: package.py PRESET
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from devtool.checkout import BUILD, ROOT

EXAMPLE = ROOT / "examples/quickstart"

# Uses what takes libraries that the example does without.
ARCHIVES = """
#include <cstdio>
#include "palmshed/palmshed.h"
int main() {
  auto engine = palmshed::Engine::Create();
  if (!engine) return 1;
  auto sandbox = engine->CreateSandbox();
  if (!sandbox || !sandbox->WriteFile("t/f", "x")) return 2;
  palmshed::MemorySink sink;
  if (!sandbox->DownloadArchive("t", sink)) return 3;
  palmshed::MemorySource source(std::as_bytes(std::span(sink.bytes())));
  if (!sandbox->UploadArchive("again", source)) return 4;
  std::puts(sandbox->ReadFile("again/f") ? "archives work" : "no file");
}
"""
ARCHIVES_CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(archives LANGUAGES CXX)
find_package(palmshed REQUIRED)
add_executable(archives archives.cc)
target_link_libraries(archives PRIVATE palmshed::engine)
"""


class Problem(Exception):
    """What a check found."""


def run(*command: str | Path, **environment: str) -> str:
    """The standard output of a command that must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise Problem(f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installation:
    """An installed prefix, moved away from where it was installed to."""

    def __init__(self, build: Path, scratch: Path) -> None:
        self.scratch = scratch
        self.prefix = scratch / "moved"
        run("cmake", "--install", build, "--prefix", scratch / "installed")
        shutil.move(scratch / "installed", self.prefix)

    def has_its_parts(self) -> None:
        names = {str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*") if p.is_file()}
        for wanted in (
            r"bin/palmshed",
            r"include/palmshed/palmshed\.h",
            r"lib.*/libpalmshed\.a",
            r"lib.*/cmake/palmshed/palmshedConfig\.cmake",
            r"lib.*/pkgconfig/palmshed\.pc",
        ):
            if not any(re.fullmatch(wanted, name) for name in names):
                raise Problem(f"nothing installed matches {wanted}")

    def installs_every_public_header(self) -> None:
        public = ROOT / "engine/include"
        wanted = {path.relative_to(public) for path in public.rglob("*.h")}
        include = self.prefix / "include"
        found = {path.relative_to(include) for path in include.rglob("*") if path.is_file()}
        if not wanted or wanted != found:
            raise Problem(f"headers differ: {sorted(map(str, wanted ^ found))}")

    def names_no_path_of_the_build(self) -> None:
        for path in self.prefix.rglob("*"):
            if path.suffix in (".cmake", ".pc", ".h") and str(ROOT) in path.read_text():
                raise Problem(f"{path.relative_to(self.prefix)} names {ROOT}")

    def is_found_by_cmake(self) -> None:
        build = self.scratch / "consumer"
        run("cmake", "-G", "Ninja", "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.expect_greeting(build / "quickstart")

    def is_found_by_pkg_config(self) -> None:
        program = self.scratch / "by-pkg-config"
        self.compile_by_pkg_config(EXAMPLE / "main.cc", program)
        self.expect_greeting(program)

    def brings_what_archives_need(self) -> None:
        source = self.scratch / "archives"
        source.mkdir()
        (source / "archives.cc").write_text(ARCHIVES)
        (source / "CMakeLists.txt").write_text(ARCHIVES_CMAKE)
        build = source / "build"
        run("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", build)
        self.compile_by_pkg_config(source / "archives.cc", source / "by-pkg-config")
        for program in (build / "archives", source / "by-pkg-config"):
            said = run(program)
            if said != "archives work\n":
                raise Problem(f"{program.name} printed {said!r}")

    def compile_by_pkg_config(self, source: Path, program: Path) -> None:
        directory = next(self.prefix.rglob("palmshed.pc")).parent
        flags = run("pkg-config", "--cflags", "--libs", "palmshed", PKG_CONFIG_PATH=str(directory))
        run("g++", "-std=c++23", source, "-o", program, *flags.split())

    def has_the_version_of_the_headers(self) -> None:
        text = (ROOT / "engine/include/palmshed/version.h").read_text()
        match = re.search(r'kVersion\[\] = "([^"]+)"', text)
        directory = next(self.prefix.rglob("palmshed.pc")).parent
        said = run("pkg-config", "--modversion", "palmshed", PKG_CONFIG_PATH=str(directory))
        if match is None or said.strip() != match[1]:
            raise Problem(f"palmshed.pc says {said.strip()}")

    def runs_a_program(self) -> None:
        said = run(self.prefix / "bin/palmshed", "run", "--", "sh", "-c", "echo inside")
        if said != "inside\n":
            raise Problem(f"palmshed run printed {said!r}")

    def expect_greeting(self, program: Path) -> None:
        said = run(program)
        expected = (EXAMPLE / "expected_output.txt").read_text()
        if said != expected:
            raise Problem(f"{program.name} printed {said!r}, not {expected!r}")


CHECKS: tuple[Callable[[Installation], None], ...] = (
    Installation.has_its_parts,
    Installation.installs_every_public_header,
    Installation.names_no_path_of_the_build,
    Installation.has_the_version_of_the_headers,
    Installation.is_found_by_cmake,
    Installation.is_found_by_pkg_config,
    Installation.brings_what_archives_need,
    Installation.runs_a_program,
)


def check_all(installation: Installation) -> int:
    failed = 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        try:
            check(installation)
            print(f"ok {name}", flush=True)
        except Problem as problem:
            failed += 1
            print(f"not ok {name}\n{problem}", flush=True)
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="palmshed-package-") as directory:
        try:
            installation = Installation(BUILD / arguments[0], Path(directory))
        except Problem as problem:
            print(f"not ok is installed\n{problem}")
            return 1
        return check_all(installation)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
