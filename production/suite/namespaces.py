"""Namespaces that a scenario has left: by inode, wherever one is held.

A namespace lives as long as something holds it: a process or thread in it, an open descriptor, a mount of
it. Orphans come to us (runner.subreaper), so that whatever a scenario has started stands below us; what
other processes of the host hold is theirs.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from runner import processes

_NAMESPACE = re.compile(r"(cgroup|ipc|mnt|net|pid|time|user|uts):\[\d+\]")


def _links(pattern: str) -> Iterator[str]:
    for link in Path("/proc").glob(pattern):
        try:
            yield os.readlink(link)
        except OSError:  # Gone meanwhile, or not ours to see.
            continue


def _mounted(pid: int) -> Iterator[str]:
    """Those with a mount in the mount namespace of a process: the root of the mount names them."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        if " - nsfs " in line:
            yield line.split()[3]


def _held_by(pid: int) -> set[str]:
    held = {*_links(f"{pid}/task/*/ns/*"), *_links(f"{pid}/task/*/fd/*"), *_mounted(pid)}
    return {name for name in held if _NAMESPACE.fullmatch(name)}


def held(ancestor: int) -> set[str]:
    """All that a process, and those below it, hold."""
    pids = [ancestor, *(process.pid for process in processes.descendants(ancestor))]
    return {f"namespace {name}" for pid in pids for name in _held_by(pid)}
