"""One kind of host after another in one guest: makes each, runs its command as its user, keeps what came of it.

    turns.py TURNS

TURNS is a JSON file: a list of turns. Of each, `NAME.out` and `NAME.exit` are written below $GUEST_RESULTS. A scope is
what systemd makes of `systemd-run --user --scope -p Delegate=yes`: a group that belongs to the user, and goes
once nothing runs in it. `scope` (beside this file) asks for one.
"""

import json
import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

GROUPS = Path("/sys/fs/cgroup")
SLICE = GROUPS / "user.slice"
CONTROLLERS = "+cpu +memory +pids"
DELEGATED = Path("/sys/kernel/cgroup/delegate")  # The files that go with a group.
ASKED = Path("/run/scopes")
RESULTS = Path(os.environ["GUEST_RESULTS"])
USERS = {"root": (0, "/root"), "user": (1000, "/home/user")}
USERS_DISK = "/var/tmp"
DISKS = {"/var/lib/palmshed": 0o700, USERS_DISK: 0o1777}
DISK_MIB = 512
LATE = 124


def give(group: Path, user: int) -> None:
    names = [name for name in DELEGATED.read_text().split() if (group / name).exists()]
    for path in (group, *(group / name for name in names)):
        os.chown(path, user, user)


def remove(group: Path) -> None:
    """With all groups below it. None has a process, which is what the caller has waited for."""
    for directory, names, _ in os.walk(group, topdown=False):
        for name in names:
            os.rmdir(os.path.join(directory, name))
    group.rmdir()


def remove_when_empty(group: Path) -> None:
    with (group / "cgroup.events").open() as events:
        changed = select.poll()
        changed.register(events, select.POLLPRI)
        while "populated 0" not in events.read():
            changed.poll()
            events.seek(0)
    remove(group)


def scope(pid: int, number: int) -> None:
    group = SLICE / f"scope-{number}.scope"
    group.mkdir()
    give(group, USERS["user"][0])
    (group / "cgroup.procs").write_text(str(pid))
    threading.Thread(target=remove_when_empty, args=(group,), daemon=True).start()


def serve_scopes() -> None:
    """A line of the pipe is the number of a process; its own pipe gets a line once it is in its scope."""
    number = 0
    while True:
        with (ASKED / "pipe").open() as asked:
            for line in asked:
                number += 1
                scope(int(line), number)
                (ASKED / f"{int(line)}").write_text("in\n")


def make_slice() -> None:
    (GROUPS / "cgroup.subtree_control").write_text(CONTROLLERS)
    (SLICE / "session.scope").mkdir(parents=True)
    (SLICE / "cgroup.subtree_control").write_text(CONTROLLERS)
    give(SLICE / "session.scope", USERS["user"][0])
    ASKED.mkdir(mode=0o1777)
    ASKED.chmod(0o1777)
    os.mkfifo(ASKED / "pipe", 0o666)
    (ASKED / "pipe").chmod(0o622)
    threading.Thread(target=serve_scopes, daemon=True).start()


def make_swap(mebibytes: int) -> None:
    Path("/sys/block/zram0/disksize").write_text(f"{mebibytes}M")
    for command in (["mkswap", "/dev/zram0"], ["swapon", "/dev/zram0"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def mount_disks() -> None:
    """Where sandboxes are, since the cache of a file system in memory is somebody's memory, and that of a disk is
    not."""
    for place, mode in DISKS.items():
        device = f"/dev/zram{Path('/sys/class/zram-control/hot_add').read_text().strip()}"
        Path("/sys/block", Path(device).name, "disksize").write_text(f"{DISK_MIB}M")
        subprocess.run(["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=1", device], check=True)
        Path(place).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", device, place], check=True)
        Path(place).chmod(mode)


def check_swap() -> None:
    """Lets a program have more than its group's memory, which only swap can give it. Where that fails a case that
    sees a program ended shows nothing about swap."""
    (GROUPS / "cgroup.subtree_control").write_text("+memory")
    group = GROUPS / "swap-control"
    group.mkdir()
    (group / "memory.max").write_text(str(16 << 20))
    fill = "import os; open('%s/cgroup.procs', 'w').write(str(os.getpid())); b'x' * (40 << 20)"
    subprocess.run([sys.executable, "-I", "-c", fill % group], check=True)
    group.rmdir()


def prepare(turn: dict[str, Any]) -> None:
    for name, value in turn.get("sysctls", {}).items():
        Path("/proc/sys", name.replace(".", "/")).write_text(str(value))
    if turn.get("groups") == "delegated" and not SLICE.exists():
        make_slice()
    if turn.get("swap_mib"):
        make_swap(turn["swap_mib"])
        check_swap()


def undo(turn: dict[str, Any], before: dict[str, str]) -> None:
    for name, value in before.items():
        Path("/proc/sys", name.replace(".", "/")).write_text(value)
    if turn.get("swap_mib"):
        subprocess.run(["swapoff", "/dev/zram0"], check=True)
        Path("/sys/block/zram0/reset").write_text("1")


def command(turn: dict[str, Any]) -> int:
    number, home = USERS[turn["as"]]
    place = RESULTS / turn["name"]
    place.mkdir()
    os.chown(place, number, number)
    group = SLICE / "session.scope" if turn.get("groups") == "delegated" else GROUPS
    environment = {**os.environ, "HOME": home, "USER": turn["as"], "GUEST_RESULTS": str(place)}
    if number != 0:
        environment["TMPDIR"] = USERS_DISK
    with (RESULTS / f"{turn['name']}.out").open("wb") as said:
        running = subprocess.Popen(
            ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec /usr/bin/setpriv "$@"']
            + [str(group), f"--reuid={number}", f"--regid={number}", "--clear-groups"]
            + turn["args"],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=environment,
            cwd=turn.get("directory", "/"),
            start_new_session=True,
        )
        try:
            return running.wait(turn["timeout_s"])
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
            return LATE


def main() -> None:
    mount_disks()
    for turn in json.loads(Path(sys.argv[1]).read_text()):
        names = turn.get("sysctls", {})
        before = {name: Path("/proc/sys", name.replace(".", "/")).read_text() for name in names}
        prepare(turn)
        code = command(turn)
        undo(turn, before)
        (RESULTS / f"{turn['name']}.exit").write_text(str(code))


if __name__ == "__main__":
    main()
