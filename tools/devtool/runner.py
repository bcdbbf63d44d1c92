"""Runs suites, keeps their logs, and sums up."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO

from devtool.checkout import LOGS, ROOT
from devtool.counting import Count, Outcome, verdict
from devtool.suites import Command, Suite

LONGEST_SECONDS = 20 * 60  # For one command; a hung suite must not hang the run.
TAIL_LINES = 40


def run_command(command: Command, log: IO[bytes]) -> int:
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
        return process.wait(LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        log.write(f"stopped after {LONGEST_SECONDS} s\n".encode())
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
            status = run_command(command, file)
            if status != 0:
                break
    return verdict(suite.count, Outcome(status, log.read_text(errors="replace"), junit))


def show_failure(suite: Suite, log: Path, count: Count) -> None:
    print(f"--- {suite.name}: the end of {log.relative_to(ROOT)}")
    for line in log.read_text(errors="replace").splitlines()[-TAIL_LINES:]:
        print("   ", line)
    for note in count.notes:
        print("   ", note)
    print("---", flush=True)


def summary_line(suite: Suite, count: Count, seconds: float) -> str:
    skipped = f", {count.skipped} skipped" if count.skipped else ""
    counts = f"{count.passed} passed, {count.failed} failed{skipped}"
    return f"{suite.name:<22}{counts:<40}{seconds:6.0f} s"


def run_suites(suites: list[Suite]) -> int:
    """One line for each suite, and at the very end "N passed, N failed"."""
    LOGS.mkdir(parents=True, exist_ok=True)
    lines, passed, failed, broken = [], 0, 0, set()
    for suite in suites:
        began = time.monotonic()
        if suite.needs in broken:
            count = Count(failed=1, notes=[f"not run: {suite.needs} failed"])
        else:
            count = run_suite(suite)
            if count.failed:
                show_failure(suite, LOGS / f"{suite.name}.log", count)
        if count.failed:
            broken.add(suite.name)
        lines.append(summary_line(suite, count, time.monotonic() - began))
        lines += [f"    {note}" for note in count.notes]
        print(lines[-1 - len(count.notes)], flush=True)
        passed, failed = passed + count.passed, failed + count.failed
    print("\nSummary\n" + "\n".join(lines) + "\n")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0
