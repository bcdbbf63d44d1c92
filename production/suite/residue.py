"""What a scenario may not leave: processes, directories, locks, mounts, control groups, loop devices."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner import leftovers, processes

GRACE_S = 5.0
# What stays on purpose: empty directories, the table of uids, what self-tests saw.
_KEEPS = ("workspaces", "palmshed", "uids", "capabilities-*")


def state_directories() -> list[Path]:
    """Where an engine of this user keeps things (docs/cli/README.md)."""
    if os.geteuid() == 0:
        return [Path("/var/lib/palmshed"), Path("/run/palmshed")]
    below = [os.environ.get(name) for name in ("XDG_STATE_HOME", "XDG_RUNTIME_DIR")]
    private = Path(f"/tmp/palmshed-{os.geteuid()}")
    return [private, *(Path(directory, "palmshed") for directory in below if directory)]


def _now() -> set[str]:
    places = state_directories()
    keeps = [str(place / name) for place in places for name in _KEEPS]
    below = processes.descendants(os.getpid())
    self_tests = {f"self-test {path}" for path in Path("/tmp").glob("palmshed-self-test-*")}
    return leftovers.host_wide(places, keeps) | self_tests | {f"process {process}" for process in below}


class Residue:
    """Compares the host before and after, once everything has had its time to go."""

    def __init__(self) -> None:
        self._before = _now()

    def left(self) -> list[str]:
        until = time.monotonic() + GRACE_S
        while True:
            processes.reap(os.getpid(), set())
            new = _now() - self._before
            if not new or time.monotonic() > until:
                return sorted(new)
            time.sleep(0.05)


@contextmanager
def nothing_left() -> Iterator[list[str]]:
    """Fills the list that it gives with what is left."""
    before, found = Residue(), list[str]()
    try:
        yield found
    finally:
        found += before.left()
