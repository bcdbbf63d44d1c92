"""What the engine does in a guest where the host itself is changed under it. Run as root; prints one document.

    engine_checks.py PALMSHED
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PALMSHED = sys.argv[1]
AS_USER = ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "env", "HOME=/home/user")
# Ways to refuse user namespaces. The second is Debian's own.
REFUSALS = {"user.max_user_namespaces": "0", "kernel.unprivileged_userns_clone": "0"}
# Not an ordinary user's without groups of their own, whatever becomes of the namespaces.
ROOTS = {"cpuQuota", "storage.loop"}
HOUR_S = 3600


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def doctor() -> dict[str, Any]:
    """What an ordinary user is told about what namespaces are for."""
    ended = ask(*AS_USER, PALMSHED, "doctor")
    missing, remedies = [], set()
    for name, told in re.findall(r"^  NO  (\S+)(.*\n(?:   .*\n)*)", ended.stdout, re.MULTILINE):
        if name in ROOTS:
            continue
        missing.append(name)
        remedies.update(re.findall(r"^      to enable:  (sudo .*)$", told, re.MULTILINE))
    return {"exit": ended.returncode, "missing": missing, "remedies": sorted(remedies)}


def refused(name: str, value: str) -> dict[str, Any]:
    """What is missing, what a run says, and what is missing once the remedy was taken."""
    sysctl = Path("/proc/sys", name.replace(".", "/"))
    before = sysctl.read_text()
    healthy = doctor()
    sysctl.write_text(value)
    told = doctor()
    runs = [ask(*AS_USER, PALMSHED, "run", "--", "pwd") for _ in range(2)]
    taken = [ask(*command.removeprefix("sudo ").split()).returncode for command in told["remedies"]]
    after = doctor()
    again = ask(*AS_USER, PALMSHED, "run", "--", "pwd")
    sysctl.write_text(before)
    return {
        "healthy": healthy,
        "told": told,
        "runs": [[run.returncode, run.stdout, run.stderr] for run in runs],
        "taken": taken,
        "after": after,
        "again": [again.returncode, again.stdout],
    }


def step_clock(seconds: int) -> None:
    time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + seconds)


def stepped(timeout: str, script: str) -> dict[str, Any]:
    """A run while the wall clock goes an hour ahead, and then two hours back."""
    words = (PALMSHED, "run", "--json", "/tmp/result", "--timeout", timeout)
    with subprocess.Popen(
        [*words, "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout
        running.stdout.readline()  # The program is there.
        began = time.monotonic()
        step_clock(HOUR_S)
        running.stdout.readline()
        step_clock(-2 * HOUR_S)
        rest = running.stdout.read()
        took = time.monotonic() - began
    step_clock(HOUR_S)
    result = json.loads(Path("/tmp/result").read_text())
    return {"rest": rest, "tookMs": took * 1000, "result": result}


def main() -> None:
    seen = {
        "refused": {
            name: refused(name, value)
            for name, value in REFUSALS.items()
            if Path("/proc/sys", name.replace(".", "/")).exists()
        },
        "in time": stepped("60s", "echo 1; sleep 1; echo 2; sleep 2; echo ok"),
        "too long": stepped("4s", "echo 1; sleep 1; echo 2; sleep 600; echo never"),
    }
    print(json.dumps(seen))


main()
