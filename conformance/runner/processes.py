"""Reads the process table."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    name: str
    zombie: bool

    def __str__(self) -> str:
        return f"{self.pid} {' '.join((command_line(self.pid) or self.name).split())[:160]}"


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def all_processes() -> dict[int, Process]:
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        stat = _read(int(entry), "stat").decode("utf-8", "replace")
        if ")" not in stat:
            continue
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        state, parent = stat[stat.rindex(")") + 2 :].split()[:2]
        found[int(entry)] = Process(int(entry), int(parent), name, state == "Z")
    return found


def command_line(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()


def descendants(ancestor: int) -> list[Process]:
    """Live processes below `ancestor`. A zombie is not ours to count: its parent has yet to reap it."""
    table = all_processes()
    found = []
    for process in table.values():
        at = process.parent
        while at in table and at != ancestor:
            at = table[at].parent
        if at == ancestor and not process.zombie:
            found.append(process)
    return found


def marked(marker: str, directory: str) -> list[Process]:
    """Live processes with the marker in their environment, or with a working directory in there."""
    found = []
    for process in all_processes().values():
        if process.zombie:
            continue
        if marker.encode() in _read(process.pid, "environ") or _stands_in(process.pid, directory):
            found.append(process)
    return found


def _stands_in(pid: int, directory: str) -> bool:
    try:
        where = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return False
    return bool(directory) and (where == directory or where.startswith(directory + "/"))


def with_text(text: str) -> list[Process]:
    """Live processes, the runner's own left out, whose command line contains `text`."""
    own = {os.getpid(), os.getppid()}
    return [
        process
        for process in all_processes().values()
        if process.pid not in own and not process.zombie and text in command_line(process.pid)
    ]


def reap(ancestor: int, ours: set[int]) -> None:
    """Orphans become children of a subreaper, which has to collect those that have ended."""
    for process in all_processes().values():
        if process.zombie and process.parent == ancestor and process.pid not in ours:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def end(ancestor: int, marker: str, ours: set[int]) -> None:
    """Kills what stands below `ancestor` or carries the marker, until there is nothing more."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        reap(ancestor, ours)
        alive = [*descendants(ancestor), *(marked(marker, "") if marker else ())]
        doomed = {process.pid for process in alive} - ours
        if not doomed:
            return
        for pid in doomed:
            kill(pid)
        time.sleep(0.02)


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
