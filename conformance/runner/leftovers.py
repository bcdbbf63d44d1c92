"""What an implementation has left on the host.

Three circles. What carries a sandbox's id must be gone when that sandbox is destroyed. What belongs to the
case (processes below its driver or with its marker, files in its private directories) must be gone when the
driver has left. What belongs to the whole host (mounts, control groups, System V objects, loop devices,
files in the directories that the driver keeps to itself) is compared by the pool, which knows what ran.
"""

import fnmatch
import os
import re
from collections.abc import Iterable
from pathlib import Path

from runner import processes

_SANDBOX_ID = re.compile(r"sbx_[0-9a-f]+")
_OURS = re.compile(r"palmshed|sbx_[0-9a-f]|exec_[0-9a-f]")
_CGROUPS = Path("/sys/fs/cgroup")


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []


def mounts() -> set[str]:
    """Mount points with what is mounted; a network namespace that is kept has one too."""
    found = set()
    for line in _lines("/proc/self/mountinfo"):
        words = line.split()
        kind, source = line.split(" - ", 1)[1].split()[:2]
        found.add(f"mount {words[4]} ({kind} {source})")
    return found


def ipc_objects() -> set[str]:
    found = set()
    for kind in ("shm", "sem", "msg"):
        for line in _lines(f"/proc/sysvipc/{kind}")[1:]:
            key, identifier = line.split()[:2]
            found.add(f"System V {kind} {identifier} (key {key})")
    return found


def loop_devices() -> set[str]:
    found: set[str] = set()
    for path in Path("/sys/block").glob("loop*/loop/backing_file"):
        found.update(f"loop device {path.parts[3]} ({line})" for line in _lines(str(path)))
    return found


def _own_groups() -> list[str]:
    paths = [line.split(":", 2)[2] for line in _lines("/proc/self/cgroup")]
    return [path for path in paths if path not in ("/", "/..")]


def control_groups() -> set[str]:
    """Those below our own, and those that carry a name of the specification."""
    own = _own_groups()
    found = set()
    for directory, names, _ in os.walk(_CGROUPS):
        for name in names:
            path = os.path.join(directory, name)
            if _OURS.search(name) or any(group + "/" in path for group in own):
                found.add(f"control group {path}")
    return found


def files_below(directories: Iterable[Path | str]) -> set[str]:
    found: set[str] = set()
    for top in directories:
        for directory, names, files in os.walk(top):
            found.update(f"file {os.path.join(directory, name)}" for name in (*names, *files))
    return found


def kept(item: str, keeps: Iterable[str]) -> bool:
    """Whether the driver said that this stays. A sandbox's own things never do."""
    if not item.startswith("file ") or _SANDBOX_ID.search(item):
        return False
    return any(fnmatch.fnmatchcase(item.removeprefix("file "), pattern) for pattern in keeps)


def host_wide(watch: Iterable[str], keeps: Iterable[str]) -> set[str]:
    files = {item for item in files_below(watch) if not kept(item, keeps)}
    return mounts() | ipc_objects() | loop_devices() | control_groups() | files


def foreign(item: str, ours: Iterable[str]) -> bool:
    """Whether it carries the id of a sandbox that no case made: somebody else's."""
    ids = _SANDBOX_ID.findall(item)
    return bool(ids) and not set(ids) & set(ours)


def with_id(identifier: str, directories: Iterable[Path | str]) -> set[str]:
    """Everything on the host that carries the id of one sandbox."""
    things = mounts() | control_groups() | files_below(directories)
    named = {f"process {process}" for process in processes.with_text(identifier)}
    return named | {item for item in things if identifier in item}


def of_case(
    ancestor: int,
    ours: set[int],
    marker: str,
    root: Path,
    private: Iterable[Path],
    keeps: Iterable[str],
) -> set[str]:
    """What a case has left when its driver has gone. `ours`: processes of the runner."""
    below = {process.pid: process for process in processes.descendants(ancestor)}
    below |= {process.pid: process for process in processes.marked(marker, str(root))}
    left = {f"process {process}" for pid, process in below.items() if pid not in ours}
    left |= {item for item in mounts() if str(root) in item}
    return left | {item for item in files_below(private) if not kept(item, keeps)}
