"""What a scenario may not leave.

Processes, files, locks, mounts, control groups, System V objects, loop devices and namespaces.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner import leftovers, processes

from suite import namespaces

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


def _of_the_host() -> set[str]:
    places = state_directories()
    keeps = [str(place / name) for place in places for name in _KEEPS]
    self_tests = {f"self-test {path}" for path in Path("/tmp").glob("palmshed-self-test-*")}
    return leftovers.host_wide(places, keeps) | self_tests


def _below_us() -> set[str]:
    below = {f"process {process}" for process in processes.descendants(os.getpid())}
    return below | namespaces.held(os.getpid())


class Residue:
    """Compares the host before and after, once everything has had its time to go."""

    def __init__(self) -> None:
        self._of_the_host, self._below_us = _of_the_host(), _below_us()

    def left(self) -> list[str]:
        """Of the host, what is there all the while: others make and remove what is theirs beside us."""
        until = time.monotonic() + GRACE_S
        of_the_host = _of_the_host() - self._of_the_host
        while True:
            processes.reap(os.getpid(), set())
            left = of_the_host | (_below_us() - self._below_us)
            if not left or time.monotonic() > until:
                return sorted(left)
            time.sleep(0.05)
            of_the_host &= _of_the_host()


@contextmanager
def nothing_left() -> Iterator[list[str]]:
    """Fills the list that it gives with what is left."""
    before, found = Residue(), list[str]()
    try:
        yield found
    finally:
        found += before.left()
