"""Facts about the machine: for the report, for profiles, and for the question whether it may be harmed."""

import importlib.metadata
import os
import platform
from pathlib import Path

from runner.model import Profile
from runner.subreaper import can_make_user_namespace

# Only tests/vm boots a kernel with this word. It cannot be put onto the command line of one that runs.
THROWAWAY_WORD = "palmshed.throwaway"


def is_throwaway(command_line: Path = Path("/proc/cmdline")) -> bool:
    return THROWAWAY_WORD in command_line.read_text().split()


def _first(path: str, start: str, separator: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return "unknown"
    found = [line.split(separator, 1)[1].strip(' "\t') for line in lines if line.startswith(start)]
    return found[0] if found else "unknown"


def _control_groups() -> str:
    return "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1 or none"


def _security_modules() -> str:
    try:
        return Path("/sys/kernel/security/lsm").read_text().strip()
    except OSError:
        return "unknown"


def facts() -> dict[str, str]:
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "distribution": _first("/etc/os-release", "PRETTY_NAME=", "="),
        "processor": _first("/proc/cpuinfo", "model name", ":"),
        "processors": str(len(os.sched_getaffinity(0))),
        "memory": _first("/proc/meminfo", "MemTotal", ":"),
        "control groups": _control_groups(),
        "security modules": _security_modules(),
        "user": "root" if os.geteuid() == 0 else "ordinary",
        "user namespaces": "allowed" if can_make_user_namespace() else "refused",
        "python": platform.python_version(),
        "jsonschema": importlib.metadata.version("jsonschema"),
    }


def mismatches(profile: Profile, machine: dict[str, str]) -> list[str]:
    """What of this machine is not as the profile wants it."""
    found = []
    user = profile.host.get("user", machine["user"])
    if user != machine["user"]:
        found.append(
            f"the profile {profile.name} is for the user {user}, this one is {machine['user']}"
        )
    allowed = machine["user namespaces"] == "allowed"
    if profile.host.get("user_namespaces", allowed) != allowed:
        wanted = "refused" if allowed else "allowed"
        found.append(f"the profile {profile.name} wants user namespaces to be {wanted}")
    return found
