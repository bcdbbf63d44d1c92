"""Where things are, and how programs are run."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
# Debian's own: the packages that `setup` installs are seen by no other.
PYTHON = "/usr/bin/python3"
# Tests that are suites of their own, for they take minutes.
NOT_WITH_THE_REST = r"^conformance\.mutants$"
# The whole suite again for each control that is left out. Once in a run is enough; the rest of them is
# part of the long run.
DEFECTS = r"^fault\."


def jobs() -> int:
    return len(os.sched_getaffinity(0))


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module below tools/."""
    return ["env", f"PYTHONPATH={TOOLS}", PYTHON, "-B", "-m", module, *arguments]


def run(*command: str) -> int:
    """Runs a command in the checkout, its output going to the terminal."""
    return subprocess.run(command, cwd=ROOT, check=False).returncode
