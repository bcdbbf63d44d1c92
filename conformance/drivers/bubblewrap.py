#!/usr/bin/env python3
"""A driver over bubblewrap: what a good peer gets with the options that its manual recommends.

Usage: bubblewrap.py [BWRAP]
"""

import os
import subprocess
import sys

sys.dont_write_bytecode = True

from support.local import LocalDriver, Program, Sandbox  # noqa: E402
from support.protocol import serve  # noqa: E402

CAPABILITIES = {
    "filesystem": True,
    "networkIsolation": True,
    "cpuLimits": False,
    "memoryLimits": False,
    "streaming": True,
    "remoteExecution": False,
    "osFilesystemIsolation": "supported",
    "filesystemView": "private",
    "crashKill": "kernel",
    "hostLoopback": "reachable",
}
# Each execution has namespaces of its own and shares nothing but files with the others of its sandbox.
LACKS = ("concurrent", "exec.tty", "exec.descendants", "resize")
PATH = "/usr/local/bin:/usr/bin:/bin"
BWRAP = sys.argv[1] if len(sys.argv) > 1 else "bwrap"


def _links() -> list[str]:
    """/bin, /lib and the like: links into /usr on a merged system, else directories of their own."""
    words = []
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            words += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    return words


def wrap(sandbox: Sandbox, program: Program) -> tuple[list[str], dict[str, str]]:
    words = [BWRAP, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    if program.network == "allow":
        words.append("--share-net")
    words += ["--uid", "1000", "--gid", "1000", "--hostname", "sandbox", "--cap-drop", "ALL"]
    words += [
        "--ro-bind",
        "/usr",
        "/usr",
        *_links(),
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--tmpfs",
        "/tmp",
    ]
    words += ["--bind", str(sandbox.workspace.directory), "/workspace"]
    words += ["--chdir", f"/workspace/{program.work_dir}".rstrip("/")]
    defaults = {
        "PATH": PATH,
        "HOME": "/workspace",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "USER": "sandbox",
    }
    for name, value in {**defaults, "PALMSHED_SANDBOX": "1", **program.env}.items():
        words += ["--setenv", name, value]
    return [*words, "--", *program.args], {"PATH": os.environ.get("PATH", PATH)}


def version() -> str:
    said = subprocess.run([BWRAP, "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[-1]


if __name__ == "__main__":
    sys.exit(serve(LocalDriver("bubblewrap", version(), CAPABILITIES, True, wrap, LACKS)))
