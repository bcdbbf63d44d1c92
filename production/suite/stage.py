"""What a scenario works with: the installed programs, a directory of its own, steps and checks."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LONGEST_S = 120.0


class Violation(Exception):
    """Something was not as a user would expect it."""


@dataclass(frozen=True)
class Ran:
    """A program that has ended. `status` as of subprocess: negative for a signal."""

    status: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")


@dataclass
class Stage:
    prefix: Path  # The installed package.
    programs: Path  # Examples and programs of the suite, built against it.
    work: Path  # Empty, and removed afterwards.
    full: bool  # The long figures.
    verbose: bool
    soak_seconds: float = 12  # How long the soak goes on,
    soak_iterations: int = sys.maxsize  # and after how many rounds it ends before.
    notes: list[str] = field(default_factory=list)  # Figures worth telling.

    @property
    def palmshed(self) -> str:
        return str(self.prefix / "bin/palmshed")

    def program(self, name: str) -> str:
        return str(self.programs / name)

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    @contextmanager
    def step(self, name: str, budget_s: float) -> Iterator[None]:
        """One part of a scenario. Taking longer than its budget is a violation."""
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        if self.verbose:
            print(f"    {name}: {took:.2f} s of {budget_s:g}", flush=True)
        self.check(took <= budget_s, f"{name} took {took:.1f} s, and may take {budget_s:g}")

    def check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise Violation(otherwise)

    def equal(self, what: str, seen: object, wanted: object) -> None:
        self.check(seen == wanted, f"{what} is {seen!r}, not {wanted!r}")

    def run(self, *words: str, stdin: bytes = b"", longest_s: float = LONGEST_S) -> Ran:
        try:
            done = subprocess.run(
                words,
                input=stdin,
                capture_output=True,
                cwd=self.work,
                timeout=longest_s,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            raise Violation(f"{' '.join(words)} does not end") from late
        return Ran(done.returncode, done.stdout, done.stderr)

    def inside(self, *words: str, options: tuple[str, ...] = (), stdin: bytes = b"") -> Ran:
        """`palmshed run`."""
        options = (*options, "-i") if stdin else options
        return self.run(self.palmshed, "run", *options, "--", *words, stdin=stdin)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.work,
        )
