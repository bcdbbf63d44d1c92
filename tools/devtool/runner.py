"""Runs suites, keeps their logs, and sums up."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from devtool.checkout import LOGS, ROOT
from devtool.counting import Count, Failure, Outcome, verdict
from devtool.suites import Command, Suite

TAIL_LINES = 40
MOST_SHOWN = 10


def run_command(command: Command, log: IO[bytes], longest_s: float) -> int:
    log.write(("$ " + " ".join(command) + "\n").encode())
    log.flush()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # So that all of it can be ended at once.
    )
    try:
        return process.wait(longest_s)
    except subprocess.TimeoutExpired:
        log.write(f"stopped after {longest_s} s\n".encode())
        return 124
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_suite(suite: Suite) -> Count:
    log, junit = LOGS / f"{suite.name}.log", LOGS / f"{suite.name}.xml"
    junit.unlink(missing_ok=True)  # An old one must not be counted.
    status = 0
    with log.open("wb") as file:
        for command in suite.commands():
            status = run_command(command, file, suite.longest_s)
            if status != 0:
                break
    return verdict(suite.count, Outcome(status, log.read_text(errors="replace"), junit))


def account_of(suite: Suite, count: Count) -> list[str]:
    """What each failed test said, or else how the suite's log ends."""
    lines = []
    for failure in count.failures[:MOST_SHOWN]:
        lines.append(f"--- {suite.name}: failed: {failure.name}")
        lines += [f"    {line}" for line in failure.said.splitlines()[-TAIL_LINES:]]
    if len(count.failures) > MOST_SHOWN:
        lines.append(f"--- {suite.name}: and {len(count.failures) - MOST_SHOWN} more")
    if not any(failure.said for failure in count.failures):
        log = LOGS / f"{suite.name}.log"
        lines.append(f"--- {suite.name}: the end of {log.relative_to(ROOT)}")
        text = log.read_text(errors="replace") if log.exists() else ""
        lines += [f"    {line}" for line in text.splitlines()[-TAIL_LINES:]]
    return [*lines, "---"]


def shown_of(suite: Suite) -> list[str]:
    if not suite.shown:
        return []
    text = (LOGS / f"{suite.name}.log").read_text(errors="replace")
    return [f"    {line}" for line in text.splitlines() if re.match(suite.shown, line)]


def summary_line(suite: Suite, count: Count, seconds: float) -> str:
    skipped = f", {count.skipped} skipped" if count.skipped else ""
    counts = f"{count.passed} passed, {count.failed} failed{skipped}"
    return f"{suite.name:<22}{counts:<40}{seconds:6.0f} s"


def run_suites(suites: list[Suite]) -> int:
    """One line for each suite, then what failed, and at the very end "N passed, N failed"."""
    LOGS.mkdir(parents=True, exist_ok=True)
    lines, failures, passed, failed, broken = [], [], 0, 0, set()
    for suite in suites:
        began = time.monotonic()
        if suite.needs in broken:
            count = Count(failed=1, failures=[Failure("not run", f"{suite.needs} failed")])
        else:
            count = run_suite(suite)
        lines.append(summary_line(suite, count, time.monotonic() - began))
        print(lines[-1])
        if count.left_out:
            print("    skipped:", ", ".join(count.left_out))
        print("".join(line + "\n" for line in shown_of(suite)), end="")
        if count.failed:
            broken.add(suite.name)
            account = account_of(suite, count)
            print("\n".join(account))
            failures += account
        sys.stdout.flush()
        passed, failed = passed + count.passed, failed + count.failed
    print("\n".join(["\nSummary", *lines, *failures, ""]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
