"""What a person sees while cases run: one line that changes, and one line for each failure."""

import shlex
import sys
from collections import Counter
from typing import TextIO

from runner.model import Case, Outcome, Status

_BAD = (Status.FAILED, Status.ERROR, Status.INTERRUPTED)
_ERASE = "\r\x1b[K"


class Progress:
    def __init__(self, cases: dict[str, Case], total: int, again: str, out: TextIO | None = None):
        """`again`: the command line that runs one case alone, up to its name."""
        self._cases, self._total, self._again = cases, total, again
        self._out = out or sys.stdout
        self._line = self._out.isatty()
        self._seen: dict[str, Outcome] = {}

    def show(self, outcome: Outcome) -> None:
        known = self._seen.get(outcome.case)
        self._seen[outcome.case] = outcome
        if outcome.status in _BAD:
            # Leftovers of the whole host are known late; what was told before is not told again.
            told = len(known.failures) if known and known.status in _BAD else 0
            self._tell(outcome, told)
        self._paint(outcome.case)

    def _tell(self, outcome: Outcome, told: int) -> None:
        erase = _ERASE if self._line else ""
        for failure in outcome.failures[told:] or ():
            rules = ", ".join(self._cases[outcome.case].rules)
            word = "ERROR" if outcome.status is Status.ERROR else "FAIL"
            line = f"{word} {outcome.case} [{rules}] {failure}; alone: {self._again} {outcome.case}"
            print(f"{erase}{line}", file=self._out, flush=True)

    def _paint(self, latest: str) -> None:
        if self._line:
            counts = Counter(outcome.status for outcome in self._seen.values())
            bad = sum(counts[status] for status in _BAD)
            done = f"[{len(self._seen)}/{self._total}] {counts[Status.PASSED]} passed, {bad} failed"
            self._out.write(f"{_ERASE}{done}  {latest[:40]}")
            self._out.flush()

    def end(self) -> None:
        if self._line:
            self._out.write(_ERASE)


def command_line(words: list[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)
